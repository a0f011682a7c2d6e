// Conversations: a model's chat template, and a history kept as token ids.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "hearth/engine.h"
#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth {

struct TemplateRequest {
  std::string messages_json =
      {};  // an array, or an object with "messages", "tools"
  std::string tools_json = {};   // an array; empty: none
  std::string kwargs_json = {};  // an object; empty: none
  bool add_generation_prompt = true;
  std::string now =
      {};  // ISO 8601 wall clock that templates see; empty: the clock
};

// `path`: a model of any kind, or a file with a template alone (.jinja).
Result<std::string> RenderChatTemplate(const std::string& path,
                                       const TemplateRequest& request);

struct ConversationOptions {
  std::string template_path = {};  // empty: the model's own template
  std::string system = {};         // empty: no system message
  std::string kwargs_json = {};    // for the template; empty: none
  std::string now = {};            // as in TemplateRequest
};

struct TurnReport {
  SyncReport sync;
  GenerateReport generate;
  KvReport kv;
};

// The history is the token ids as they were sampled, end-of-turn marker
// included; the next turn appends to them, so that nothing is tokenised twice.
// Where a template renders earlier turns in another way than they were sampled
// (some drop earlier thoughts), the new rendering counts and the shared prefix
// is reused.
class Conversation {
 public:
  virtual ~Conversation() = default;

  // One user message and its answer. After an error the history is as before.
  virtual Result<TurnReport> Turn(const std::string& user,
                                  const GenerateOptions& options,
                                  const Session::Progress& progress,
                                  const Session::OnToken& on_token) = 0;
  // Forgets all turns; the system message stays.
  virtual void Clear() = 0;
  // Takes the last turn back and gives its user message, for another try.
  // kNotFound when there is none.
  virtual Result<std::string> Undo() = 0;
  // Forgets the oldest turn; the system message stays. What is left is read
  // anew by the next turn. kNotFound when there is none.
  virtual Result<void> DropOldest() = 0;
  // Another system message from the next turn on; empty: none.
  virtual void SetSystem(const std::string& text) = 0;
  // Other template variables from the next turn on, as in the options.
  virtual Result<void> SetKwargs(const std::string& kwargs_json) = 0;
  // Messages and token ids as a JSON file, and back. Save: an existing file is
  // replaced when it is a conversation, else kInvalidArgument. Load: where the
  // ids are not of this model's vocabulary or template, the text is encoded
  // again, and the next turn's sync.warnings say so. After an error the
  // conversation is as before.
  virtual Result<void> Save(const std::string& path) const = 0;
  virtual Result<void> Load(const std::string& path) = 0;
  virtual int n_turns() const = 0;
};

// Whether a conversation can be saved there: for before the work.
Result<void> CheckConversationFile(const std::string& path);

// The conversation keeps what it needs of the engine. kNotFound when the model
// has no chat template and none is given.
Result<std::unique_ptr<Conversation>> OpenConversation(
    Engine& engine, const ConversationOptions& options);

// One user message, rendered and tokenised.
Result<std::vector<std::int32_t>> EncodeChatMessage(
    Engine& engine, const ConversationOptions& options,
    const std::string& user);

}  // namespace hearth
