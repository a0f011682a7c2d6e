#include "serve/app/server.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "hearth/sampling_defaults.h"
#include "serve/app/app.h"
#include "serve/app/core.h"
#include "serve/http/http_server.h"

namespace hearth::serve {
namespace {

constexpr int kWorkers = 2;
// Answers to requests that were cut off get this long to be taken.
constexpr int kFlushMs = 500;

// The name under which clients know the model: that of its file; the model
// inside the program has none and says its own.
std::string NameOfModel(const ModelInfo& info) {
  if (info.path.empty()) return info.name;
  std::filesystem::path path = info.path;
  if (path.filename().empty()) path = path.parent_path();
  const std::string name = path.filename().string();
  for (const char* ending : {".gguf", ".tinygpt"}) {
    if (name.ends_with(ending)) {
      return name.substr(0, name.size() - std::string_view(ending).size());
    }
  }
  return name;
}

class RunningServer final : public Server {
 public:
  RunningServer(const ServerOptions& options, Note note,
                std::unique_ptr<KeyRing> keys)
      : options_(options),
        note_(std::move(note)),
        keys_(std::move(keys)),
        gate_({.bound = options.http.addresses,
               .allow_hosts = options.allow_hosts,
               .allow_origins = options.allow_origins,
               .share_cache = options.share_cache},
              *keys_),
        app_(gate_) {}
  ~RunningServer() override { (void)End(0); }

  Result<void> Open() {
    HEARTH_ASSIGN(http_, HttpServer::Listen(options_.http, app_));
    sockets_ = std::thread([this] { http_->Run(); });
    return {};
  }

  Result<void> Serve(std::unique_ptr<Engine> engine,
                     const SamplingOptions& sampling) override;
  Result<void> End(double seconds_max) override;

  void ReloadKeys() override { keys_->Reload(); }
  int port() const override { return http_->port(); }
  std::vector<std::string> base_urls() const override;
  std::string model_name() const override { return core_.served.id; }
  bool can_chat() const override { return core_.dialogue != nullptr; }

 private:
  Result<void> OpenKept(const EngineOptions& options);

  const ServerOptions options_;
  const Note note_;
  const std::unique_ptr<KeyRing> keys_;
  const Gate gate_;
  App app_;
  Core core_;
  std::unique_ptr<HttpServer> http_;
  std::thread sockets_, steps_;
  bool ended_ = false;
};

Result<void> RunningServer::Serve(std::unique_ptr<Engine> engine,
                                  const SamplingOptions& sampling) {
  if (options_.log) {
    HEARTH_ASSIGN(core_.log, RequestLog::Open(options_.log_file));
  }
  HEARTH_TRY(OpenKept(engine->options()));
  auto dialogue =
      Dialogue::Open(*engine, options_.template_path, options_.tool_format);
  if (dialogue.ok()) {
    core_.dialogue = *std::move(dialogue);
  } else if (dialogue.error().code == Code::kNotFound &&
             options_.template_path.empty() && options_.tool_format.empty()) {
    core_.no_dialogue = dialogue.error().message;
    note_(core_.no_dialogue + "; only plain completions are served");
  } else {
    return dialogue.error();
  }
  const ModelInfo& info = engine->info();
  core_.served.id =
      options_.model_name.empty() ? NameOfModel(info) : options_.model_name;
  core_.served.created = NowMs() / 1000;
  core_.served.context_tokens = engine->context_tokens();
  const std::string format =
      core_.dialogue == nullptr ? "" : core_.dialogue->tool_format();
  core_.served.short_call_ids = format.starts_with("mistral");
  core_.metrics = Metrics::Make(format);
  core_.sampling = sampling;
  core_.has_seed = options_.has_seed;
  core_.strict_model = options_.strict_model;
  core_.scheduling = options_.scheduling;
  core_.engine = std::move(engine);
  core_.scheduler = Scheduler::Make(*core_.engine, options_.scheduling);
  core_.later = [this](int ms, std::function<void()> then) {
    http_->Later(ms, std::move(then));
  };
  core_.n_connections = [this] { return http_->n_connections(); };
  core_.workers = std::make_unique<Workers>(kWorkers);
  core_.page = std::make_unique<PageDesk>(core_);
  steps_ = std::thread([this] { core_.scheduler->Run(); });
  app_.Serve(core_);
  return {};
}

// What is kept between requests, beside the store when there is one.
Result<void> RunningServer::OpenKept(const EngineOptions& options) {
  std::shared_ptr<const Vault> vault;
  if (!options.cache_key_file.empty()) {
    HEARTH_ASSIGN(vault, Vault::FromKeyFile(options.cache_key_file));
  }
  const std::string& directory = options.prompt_cache_dir;
  if (options_.journal) {
    HEARTH_ASSIGN(core_.journal, Journal::Open(directory, vault));
  }
  ResponseStoreOptions kept;
  if (!directory.empty()) {
    kept.directory = directory + "/responses";
    HEARTH_TRY(MakeDirectories(kept.directory));
  }
  kept.vault = vault;
  HEARTH_ASSIGN(core_.store, ResponseStore::Open(std::move(kept)));
  return {};
}

Result<void> RunningServer::End(double seconds_max) {
  if (ended_ || http_ == nullptr) return {};
  ended_ = true;
  const Stopwatch since;
  app_.Stop();
  if (core_.page != nullptr) core_.page->Stop();
  http_->Drain();
  Result<void> saved;
  if (core_.scheduler != nullptr) {
    core_.scheduler->Stop();
    steps_.join();
    // Those who were cut off get to read why.
    while (http_->n_connections() > 0 && since.ms() < kFlushMs) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }
  http_->Stop();
  sockets_.join();
  // Only the sockets' thread gives work. Connections hold what waits for
  // answers; they go before all of that.
  core_.workers.reset();
  http_.reset();
  if (core_.scheduler != nullptr) {
    core_.scheduler.reset();
    saved = core_.engine->DrainSaves(
        std::max(seconds_max - since.ms() / 1000, 0.1));
  }
  return saved;
}

std::vector<std::string> RunningServer::base_urls() const {
  std::vector<std::string> urls;
  for (const std::string& address : http_->addresses()) {
    const bool v6 = address.find(':') != std::string::npos;
    urls.push_back("http://" + (v6 ? "[" + address + "]" : address) + ":" +
                   std::to_string(http_->port()));
  }
  return urls;
}

}  // namespace

Result<std::unique_ptr<Server>> Server::Listen(const ServerOptions& options,
                                               Note note) {
  HEARTH_ASSIGN(auto keys,
                KeyRing::Open(options.api_key_file, options.api_key, note));
  const bool alone = std::all_of(
      options.http.addresses.begin(), options.http.addresses.end(),
      [](const std::string& address) { return IsLoopback(address); });
  if (!alone && keys->n_keys() == 0) {
    return {Code::kInvalidArgument,
            "other machines could use this server, and nobody is asked for a "
            "key; name a file of keys (one \"name key\" a line, mode 600)"};
  }
  auto server = std::make_unique<RunningServer>(options, std::move(note),
                                                std::move(keys));
  HEARTH_TRY(server->Open());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace hearth::serve
