// A model's chat template with its engine: conversations rendered into token
// ids, and answers read back: reasoning, text, tool calls.
//
// Threads  a Dialogue may be used by several threads; an AnswerReader by one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/constraint.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

// A conversation in OpenAI's chat form, key order kept.
struct DialogueRequest {
  // An array of {"role", "content": text, "reasoning_content": text,
  // "tool_calls": [{"id", "type": "function", "function": {"name",
  // "arguments": object}}], "tool_call_id", "name"}.
  std::string messages_json = {};
  std::string tools_json = {};   // array of {"type": "function", ...}; or empty
  std::string kwargs_json = {};  // template variables; an object, or empty
  bool add_generation_prompt = true;
  // Numbers of leading messages whose end in the prompt is asked for. Each
  // costs a rendering.
  std::vector<int> ends_after = {};
};

// Ids begin..end-1 of a prompt.
struct IdRange {
  int begin = 0, end = 0;
};

struct RenderedPrompt {
  std::string text;
  std::vector<std::int32_t> ids;
  // For each of the request's `ends_after`: how many leading ids hold these
  // messages and nothing else; 0 where the template writes them otherwise when
  // they stand alone.
  std::vector<int> message_ends = {};
  // For Session::Sync and Attach, of a model that carries states whose control
  // tokens do not say it: numbers of leading ids, rising, that end with a
  // message.
  std::vector<int> marks = {};
  // The model's earlier answers, rising, without what opens and ends them.
  // Those whose end no token marks are left out.
  std::vector<IdRange> answers = {};
  // The prompt ends inside the answer's reasoning ("<think>" was rendered).
  bool in_reasoning = false;
};

enum class ToolUse : std::uint8_t { kNone, kAuto, kRequired, kNamed };
enum class BodyForm : std::uint8_t { kText, kJsonObject, kJsonSchema, kGbnf };

// What an answer is to be.
struct AnswerForm {
  ToolUse tool_use = ToolUse::kAuto;
  std::vector<std::string> allowed_tools = {};  // empty: all; kNamed: the one
  bool parallel_calls = true;
  BodyForm body = BodyForm::kText;
  std::string body_grammar = {};  // the schema's JSON, or GBNF
  bool strict_tools = false;      // every call's arguments follow their schema
  int reasoning_tokens_max = -1;  // then its end marker; -1: no limit
  // Whether an answer that is held to a form may begin with a thought.
  bool thoughts = true;
};

struct AnswerConstraint {
  MakeConstraint make = {};             // empty: the answer is free
  std::vector<std::string> notes = {};  // what it is not held to
  bool is_new = false;                  // it was compiled for this request
};

struct AnswerEvent {
  enum class Kind : std::uint8_t {
    kReasoning,      // text
    kText,           // text
    kCallBegin,      // call, text: the tool's name
    kCallArguments,  // call, text: a piece of JSON text
    kCallEnd,        // call
    kFault           // text: what was malformed; what follows is kText
  };
  Kind kind = Kind::kText;
  int call = -1;  // calls are counted from 0
  std::string text = {};
};

// Reads one answer as it grows. Events are never taken back, and do not depend
// on how the answer was cut.
class AnswerReader {
 public:
  virtual ~AnswerReader() = default;
  virtual std::vector<AnswerEvent> Feed(const Token& token) = 0;
  // No more will come: what was held back.
  virtual std::vector<AnswerEvent> Finish() = 0;
};

class Dialogue {
 public:
  // `template_path`: empty: the model's own; kNotFound when it has none.
  // `tool_format`: how calls are written, by name (docs/tool-calls.md); empty:
  // found from the template. kNotFound for an unknown one.
  static Result<std::unique_ptr<Dialogue>> Open(
      Engine& engine, const std::string& template_path = {},
      const std::string& tool_format = {});
  virtual ~Dialogue() = default;

  // kInvalidArgument when the template refuses the conversation.
  virtual Result<RenderedPrompt> Render(
      const DialogueRequest& request) const = 0;
  // Whether the template reads such a variable.
  virtual bool Reads(std::string_view variable) const = 0;
  // How the model writes calls ("hermes", "harmony", ...); empty: no known
  // form.
  virtual std::string tool_format() const = 0;

  virtual Result<std::unique_ptr<AnswerReader>> Reader(
      const DialogueRequest& request, const AnswerForm& form,
      const RenderedPrompt& prompt) const = 0;
  // What holds an answer to its form. The last few forms are kept: an agent
  // sends the same tools with each turn. kUnsupported for a schema that cannot
  // be held to where that is asked.
  virtual Result<AnswerConstraint> Constraint(
      const DialogueRequest& request, const AnswerForm& form,
      const RenderedPrompt& prompt) const = 0;
};

}  // namespace hearth
