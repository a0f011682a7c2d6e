// The server as its program has it: listens, opens, serves, ends.
//
//   HEARTH_ASSIGN(auto server, Server::Listen(options, note));
//   ... open the engine; /health says "loading" ...
//   HEARTH_TRY(server->Serve(std::move(engine)));
//   ... wait for a signal ...
//   HEARTH_TRY(server->End(10));
//
// Threads  one uses the object, but ReloadKeys may be called by any.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "hearth/result.h"
#include "serve/access/gate.h"
#include "serve/http/http_options.h"
#include "serve/schedule/scheduler.h"

namespace hearth::serve {

struct ServerOptions {
  HttpOptions http = {};
  std::vector<std::string> allow_hosts = {}, allow_origins = {};
  bool share_cache = false;
  std::string api_key_file = {};
  std::string api_key = {};  // one more key; empty: none
  SchedulerOptions scheduling = {};
  std::string model_name = {};  // empty: by the model's file
  bool strict_model = false;
  bool has_seed = false;  // every request without a seed has that of Serve
  bool journal = true;
  std::string tool_format = {};    // how calls are written; empty: found
  std::string template_path = {};  // empty: the model's own
  bool log = true;
  std::string log_file = {};  // empty: standard error
};

class Server {
 public:
  using Note = std::function<void(const std::string&)>;

  // Listens and says "loading". kInvalidArgument for an address beyond this
  // machine without keys; otherwise as HttpServer::Listen and KeyRing::Open.
  static Result<std::unique_ptr<Server>> Listen(const ServerOptions& options,
                                                Note note);
  virtual ~Server() = default;

  // Answers from now on. `sampling`: where a request says nothing.
  virtual Result<void> Serve(std::unique_ptr<Engine> engine,
                             const SamplingOptions& sampling) = 0;
  // No new requests; streams get their error; everything is saved. After
  // `seconds_max` what is left is lost, and said to be.
  virtual Result<void> End(double seconds_max) = 0;

  virtual void ReloadKeys() = 0;
  virtual int port() const = 0;
  // "http://127.0.0.1:8080", one for each address.
  virtual std::vector<std::string> base_urls() const = 0;
  virtual std::string model_name() const = 0;  // after Serve
  virtual bool can_chat() const = 0;
};

}  // namespace hearth::serve
