#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/files/output.h"
#include "base/hash.h"
#include "engine/dialogue/message_marks.h"
#include "engine/engine_core.h"
#include "engine/text/chat_source.h"
#include "engine/text/conversation_file.h"
#include "engine/text/tokenizer_factory.h"
#include "formats/loader.h"
#include "hearth/chat.h"

namespace hearth {
namespace {

Result<ChatSource> SourceFor(const EngineCore& core,
                             const ConversationOptions& options) {
  auto source = options.template_path.empty()
                    ? FindChatSource(core.model, *core.tokenizer,
                                     /*with_tools=*/false)
                    : ReadChatSource(options.template_path);
  if (!source.ok()) return source;
  if (!options.kwargs_json.empty()) {
    HEARTH_ASSIGN(source->options.kwargs,
                  ParseOrderedJson(options.kwargs_json, "template kwargs"));
  }
  if (!options.now.empty()) {
    HEARTH_ASSIGN(source->options.now, ParseWallClock(options.now));
  }
  return source;
}

OrderedJson Message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

OrderedJson FirstMessages(const ConversationOptions& options) {
  OrderedJson messages = OrderedJson::array();
  if (!options.system.empty()) {
    messages.push_back(Message("system", options.system));
  }
  return messages;
}

// Templates write their own special tokens, so none are added around.
Result<std::vector<std::int32_t>> EncodeRendered(const EngineCore& core,
                                                 std::string_view text) {
  return core.tokenizer->Encode(text,
                                {.add_special = false, .parse_special = true});
}

// Its first member says what a file is, however others have laid it out; a file
// of gigabytes is not read for it.
bool BeginsAsConversation(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text = text.substr(0, 100);
  for (const std::string_view part : {"{", "\"hearth_conversation\""}) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (!text.starts_with(part)) return false;
    text.remove_prefix(part.size());
  }
  return true;
}

// A conversation may take the place of another one.
OutputRule ConversationRule() {
  return {.same_kind = [](const std::string& path) {
    const auto file = MappedFile::Open(path);
    return file.ok() && BeginsAsConversation(AsText(file->bytes()));
  }};
}

class ConversationImpl final : public Conversation {
 public:
  ConversationImpl(std::shared_ptr<EngineCore> core,
                   std::unique_ptr<Session> session, ChatSource source,
                   ConversationOptions options)
      : core_(std::move(core)),
        session_(std::move(session)),
        source_(std::move(source)),
        options_(std::move(options)),
        messages_(FirstMessages(options_)) {}

  Result<TurnReport> Turn(const std::string& user,
                          const GenerateOptions& options,
                          const Session::Progress& progress,
                          const Session::OnToken& on_token) override {
    OrderedJson messages = messages_;
    messages.push_back(Message("user", user));
    HEARTH_ASSIGN(std::string prompt,
                  source_.chat.Render(messages, nullptr, source_.options));
    HEARTH_ASSIGN(std::vector<std::int32_t> ids, IdsOf(prompt));
    TurnReport report;
    HEARTH_ASSIGN(const std::vector<int> marks, MarksOf(messages, prompt, ids));
    HEARTH_ASSIGN(report.sync, session_->Sync(ids, progress, marks));
    report.sync.warnings.insert(report.sync.warnings.end(), notes_.begin(),
                                notes_.end());
    HEARTH_ASSIGN(report.generate,
                  session_->Generate(options, on_token, progress));
    session_->Persist();
    report.kv = session_->Usage();

    messages.push_back(Message("assistant", report.generate.text));
    past_.push_back({prompt_, answer_, ids_});
    if (past_.size() > kPastMax) past_.erase(past_.begin());
    messages_ = std::move(messages);
    prompt_ = std::move(prompt);
    answer_ = report.generate.text;
    answer_ += report.generate.stop_text;  // sampled, not shown
    ids_ = std::move(ids);
    ids_.insert(ids_.end(), report.generate.token_ids.begin(),
                report.generate.token_ids.end());
    if (report.generate.end_id >= 0) ids_.push_back(report.generate.end_id);
    ++n_turns_;
    notes_.clear();
    return report;
  }

  void Clear() override {
    messages_ = FirstMessages(options_);
    ReadAnew();
    n_turns_ = 0;
  }

  Result<std::string> Undo() override {
    if (n_turns_ == 0 || messages_.size() < 2) return NoTurn();
    messages_.erase(messages_.size() - 1);
    std::string user = TextOf(messages_.back(), "content");
    messages_.erase(messages_.size() - 1);
    --n_turns_;
    if (past_.empty()) {
      ReadAnew();
    } else {
      prompt_ = std::move(past_.back().prompt);
      answer_ = std::move(past_.back().answer);
      ids_ = std::move(past_.back().ids);
      past_.pop_back();
    }
    return user;
  }

  Result<void> DropOldest() override {
    const std::size_t first = HasSystem() ? 1 : 0;
    if (n_turns_ == 0 || messages_.size() < first + 2) return NoTurn();
    messages_.erase(first);
    messages_.erase(first);
    --n_turns_;
    ReadAnew();
    return {};
  }

  void SetSystem(const std::string& text) override {
    options_.system = text;
    OrderedJson messages = FirstMessages(options_);
    for (std::size_t i = HasSystem() ? 1 : 0; i < messages_.size(); ++i) {
      messages.push_back(messages_[i]);
    }
    messages_ = std::move(messages);
    ReadAnew();
  }

  Result<void> SetKwargs(const std::string& kwargs_json) override {
    HEARTH_ASSIGN(source_.options.kwargs,
                  ParseOrderedJson(kwargs_json, "template kwargs"));
    options_.kwargs_json = kwargs_json;
    return {};
  }

  Result<void> Save(const std::string& path) const override {
    const SavedConversation saved = {.messages = messages_,
                                     .prompt = prompt_,
                                     .answer = answer_,
                                     .ids = ids_,
                                     .n_turns = n_turns_,
                                     .tokenizer = TokenizerDigest(),
                                     .chat_template = TemplateDigest()};
    return WriteOutput(path, ConversationRule(), ConversationText(saved));
  }

  Result<void> Load(const std::string& path) override {
    HEARTH_ASSIGN(const std::string text, ReadTextFile(path));
    HEARTH_ASSIGN(SavedConversation saved, ParseConversation(text, path));
    messages_ = std::move(saved.messages);
    n_turns_ = saved.n_turns;
    ReadAnew();
    if (const std::string why = ForeignBy(saved); !why.empty()) {
      notes_.push_back(path + ": " + why + "; its text is encoded again");
      return {};
    }
    prompt_ = std::move(saved.prompt);
    answer_ = std::move(saved.answer);
    ids_ = std::move(saved.ids);
    return {};
  }

  int n_turns() const override { return n_turns_; }

 private:
  std::string TokenizerDigest() const {
    return ToHex(core_->tokenizer->Fingerprint());
  }
  std::string TemplateDigest() const {
    return ToHex(Sha256().Field(source_.chat.source()).Finish());
  }
  // Why the ids of a saved conversation are of no use here; mostly empty.
  std::string ForeignBy(const SavedConversation& saved) const {
    if (saved.tokenizer.empty()) {
      return "it does not say which model it was had with";
    }
    if (saved.tokenizer != TokenizerDigest()) {
      return "it was had with a model of another vocabulary";
    }
    if (saved.chat_template != TemplateDigest()) {
      return "it was had with another chat template";
    }
    const bool known = std::all_of(
        saved.ids.begin(), saved.ids.end(),
        [&](std::int32_t id) { return id < core_->model.config.vocab_size; });
    return known ? "" : "its tokens are not of this model's vocabulary";
  }

  // The history before a turn, for Undo: as it was sampled.
  struct Past {
    std::string prompt, answer;
    std::vector<std::int32_t> ids;
  };
  static constexpr std::size_t kPastMax = 16;  // older ones are read anew

  // A member that is a text, or nothing: messages come from files, too.
  static std::string TextOf(const OrderedJson& message, const char* key) {
    const bool has = message.is_object() && message.contains(key) &&
                     message[key].is_string();
    return has ? message[key].get<std::string>() : "";
  }
  static Error NoTurn() { return {Code::kNotFound, "there is no turn yet"}; }
  bool HasSystem() const {
    return !messages_.empty() && TextOf(messages_[0], "role") == "system";
  }
  // The messages changed: the next turn renders and encodes all of them. What
  // they share with the session's tokens is still not computed again.
  void ReadAnew() {
    prompt_.clear();
    answer_.clear();
    ids_.clear();
    past_.clear();
  }

  // The ids of a rendered prompt: the history as it was sampled plus what the
  // rendering adds behind it, when the rendering repeats the history; else all
  // of it anew.
  Result<std::vector<std::int32_t>> IdsOf(const std::string& prompt) const {
    std::string_view rest = prompt;
    if (ids_.empty() || !rest.starts_with(prompt_)) {
      return EncodeRendered(*core_, prompt);
    }
    rest.remove_prefix(prompt_.size());
    if (!rest.starts_with(answer_)) return EncodeRendered(*core_, prompt);
    rest.remove_prefix(answer_.size());
    if (core_->tokenizer->IsEnd(ids_.back())) {
      const std::string marker = core_->tokenizer->Piece(ids_.back());
      if (rest.starts_with(marker)) rest.remove_prefix(marker.size());
    }
    HEARTH_ASSIGN(const std::vector<std::int32_t> more,
                  EncodeRendered(*core_, rest));
    std::vector<std::int32_t> ids = ids_;
    ids.insert(ids.end(), more.begin(), more.end());
    return ids;
  }

  // Where messages end in `ids`, for a model that carries states.
  Result<std::vector<int>> MarksOf(const OrderedJson& messages,
                                   const std::string& prompt,
                                   const std::vector<std::int32_t>& ids) const {
    if (!core_->model.config.HasStates()) return std::vector<int>{};
    HEARTH_ASSIGN(const std::vector<std::int32_t> rendered,
                  EncodeRendered(*core_, prompt));
    RenderOptions options = source_.options;
    options.add_generation_prompt = false;
    HEARTH_ASSIGN(const std::vector<int> marks,
                  MessageMarks(*core_->tokenizer, prompt, rendered,
                               messages.size(), [&](std::size_t n) {
                                 const auto end =
                                     messages.begin() +
                                     static_cast<std::ptrdiff_t>(n);
                                 return source_.chat.Render(
                                     OrderedJson(messages.begin(), end),
                                     nullptr, options);
                               }));
    return MarksAmong(ids, rendered, marks);
  }

  std::shared_ptr<EngineCore> core_;
  std::unique_ptr<Session> session_;
  ChatSource source_;
  ConversationOptions options_;
  OrderedJson messages_;
  std::string prompt_;             // the last rendering,
  std::string answer_;             // what was sampled after it,
  std::vector<std::int32_t> ids_;  // and both as ids, end marker included
  int n_turns_ = 0;
  std::vector<Past> past_;
  std::vector<std::string> notes_;  // for the next turn's warnings
};

}  // namespace

Result<void> CheckConversationFile(const std::string& path) {
  return CheckOutput(path, ConversationRule());
}

Result<std::unique_ptr<Conversation>> OpenConversation(
    Engine& engine, const ConversationOptions& options) {
  HEARTH_ASSIGN(ChatSource source,
                SourceFor(EngineAccess::Core(engine), options));
  HEARTH_ASSIGN(auto session, engine.NewSession());
  return std::unique_ptr<Conversation>(std::make_unique<ConversationImpl>(
      EngineAccess::Shared(engine), std::move(session), std::move(source),
      options));
}

Result<std::vector<std::int32_t>> EncodeChatMessage(
    Engine& engine, const ConversationOptions& options,
    const std::string& user) {
  HEARTH_ASSIGN(const ChatSource source,
                SourceFor(EngineAccess::Core(engine), options));
  OrderedJson messages = FirstMessages(options);
  messages.push_back(Message("user", user));
  HEARTH_ASSIGN(const std::string prompt,
                source.chat.Render(messages, nullptr, source.options));
  return EncodeRendered(EngineAccess::Core(engine), prompt);
}

namespace {

struct Asked {
  OrderedJson messages, tools;  // tools: null without
};

Result<Asked> ReadRequest(const TemplateRequest& request) {
  Asked out;
  HEARTH_ASSIGN(out.messages,
                ParseOrderedJson(request.messages_json, "messages"));
  if (!request.tools_json.empty()) {
    HEARTH_ASSIGN(out.tools, ParseOrderedJson(request.tools_json, "tools"));
  }
  if (out.messages.is_object()) {
    if (out.tools.is_null() && out.messages.contains("tools")) {
      out.tools = out.messages["tools"];
    }
    OrderedJson inner = out.messages.value("messages", OrderedJson());
    out.messages = std::move(inner);
  }
  if (!out.messages.is_array()) {
    return {Code::kInvalidArgument, "messages: not a JSON array"};
  }
  return out;
}

Result<ChatSource> SourceAt(const std::string& path, bool with_tools) {
  if (path.ends_with(".jinja")) return ReadChatSource(path);
  HEARTH_ASSIGN(const LoadedModel model, LoadModel(path));
  HEARTH_ASSIGN(const auto tokenizer, MakeTokenizer(model));
  return FindChatSource(model, *tokenizer, with_tools);
}

}  // namespace

Result<std::string> RenderChatTemplate(const std::string& path,
                                       const TemplateRequest& request) {
  HEARTH_ASSIGN(const Asked asked, ReadRequest(request));
  HEARTH_ASSIGN(const ChatSource source,
                SourceAt(path, !asked.tools.is_null()));
  RenderOptions options = source.options;
  options.add_generation_prompt = request.add_generation_prompt;
  if (!request.kwargs_json.empty()) {
    HEARTH_ASSIGN(options.kwargs,
                  ParseOrderedJson(request.kwargs_json, "template kwargs"));
  }
  if (!request.now.empty()) {
    HEARTH_ASSIGN(options.now, ParseWallClock(request.now));
  }
  return source.chat.Render(
      asked.messages, asked.tools.is_null() ? nullptr : &asked.tools, options);
}

}  // namespace hearth
