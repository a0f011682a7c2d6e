// What all writers do: characters are never cut, a choice is finished once,
// calls get their ids, and what a tool of another name is called goes out under
// the name that it was declared by.
#pragma once

#include <string>
#include <vector>

#include "serve/wire/answer.h"
#include "serve/wire/json/body_json.h"

namespace hearth::serve {

// Text whose last character may be incomplete.
class WholeCharacters {
 public:
  // What can go out now; the rest waits for its other bytes.
  std::string Push(std::string_view text);
  std::string Finish();  // the rest, U+FFFD in its place

 private:
  std::string held_;
};

struct WrittenCall {
  std::string id = {};
  std::string name = {};  // as the caller declared it
  std::string space = {};
  bool custom = false;
  bool ended = false;
  std::string arguments = {};  // JSON text so far
  // Of a custom tool, after its end: the one text.
  std::string CustomInput() const;
  // An object, {} when the arguments never became one.
  OrderedJson ArgumentsObject() const;
};

// What a choice has come to.
struct WrittenChoice {
  std::string reasoning = {};
  std::string text = {};
  std::string echo = {};
  std::vector<WrittenCall> calls = {};
  std::vector<LogprobEntry> logprobs = {};  // of the text
  bool finished = false;
  FinishReason reason = FinishReason::kStop;
  std::string stop_text = {};
};

class WriterBase : public AnswerWriter {
 public:
  WriterBase(const WireRequest& request, const ServedModel& served,
             const std::string& request_id, std::int64_t now_s);
  std::string Event(int choice, const AnswerEvent& event,
                    const std::vector<LogprobEntry>& logprobs) final;
  std::string FinishChoice(int choice, FinishReason reason,
                           const std::string& stop_text) final;
  void SetEcho(int choice, std::string text) final;
  PingRule pings() const override;
  std::optional<StoredResponse> TakeRecord() override { return std::nullopt; }

 protected:
  using Kind = AnswerEvent::Kind;
  // A piece, already added to the choice: whole characters of one kind. For
  // calls `choice.calls.back()` is the call.
  virtual std::string OnPiece(int index, WrittenChoice& choice, Kind kind,
                              const std::string& text,
                              const std::vector<LogprobEntry>& logprobs) = 0;
  virtual std::string OnFinish(int index, WrittenChoice& choice) = 0;

  // Figures with the fault that was seen on the way.
  Figures WithFault(const Figures& figures) const;
  std::string OwnId(const char* prefix) const { return prefix + request_id_; }

  const WireRequest request_;
  const ServedModel served_;
  const std::string request_id_;
  const std::int64_t now_s_;
  std::vector<WrittenChoice> choices_;

 private:
  struct Held {
    WholeCharacters characters = {};
    Kind kind = Kind::kText;
    std::vector<LogprobEntry> logprobs = {};
    bool in_call = false;
  };
  std::string Add(int index, Kind kind, std::string text,
                  std::vector<LogprobEntry> logprobs);
  std::string FlushHeld(int index);
  void BeginCall(int index, const std::string& name);

  std::vector<Held> held_;
  std::string parse_fault_;
};

// One server-sent event. `event` empty: data alone.
std::string SseEvent(std::string_view event, const OrderedJson& data);

// -9999 for what can never come, as published: JSON has no infinity.
double FiniteLogprob(double logprob);

// [{token, logprob, bytes, top_logprobs}], as chat, responses and Ollama have
// them.
OrderedJson LogprobList(const std::vector<LogprobEntry>& logprobs);

}  // namespace hearth::serve
