// An answer that is written, and readers of what came out which know nothing of
// the writers.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "serve/wire/answer.h"
#include "serve/wire/json/body_json.h"

namespace hearth::serve {

struct SseMessage {
  std::string event;
  OrderedJson data;
  bool done = false;     // data: [DONE]
  bool comment = false;  // a line that begins with a colon
};

// Fails on anything that is not server-sent events of JSON.
inline std::vector<SseMessage> ReadSse(const std::string& text) {
  std::vector<SseMessage> out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = text.find("\n\n", at);
    if (end == std::string::npos) {
      ADD_FAILURE() << "an event without its end: " << text.substr(at);
      return out;
    }
    SseMessage message;
    std::string data;
    for (std::size_t line = at; line < end;) {
      const std::size_t stop = std::min(text.find('\n', line), end);
      const std::string one = text.substr(line, stop - line);
      if (one.rfind("data: ", 0) == 0) {
        data += one.substr(6);
      } else if (one.rfind("event: ", 0) == 0) {
        message.event = one.substr(7);
      } else if (one.rfind(":", 0) == 0) {
        message.comment = true;
      } else {
        ADD_FAILURE() << "not a field: " << one;
      }
      line = stop + 1;
    }
    if (data == "[DONE]") {
      message.done = true;
    } else if (!message.comment) {
      message.data = OrderedJson::parse(data, nullptr, false);
      EXPECT_FALSE(message.data.is_discarded()) << data;
    }
    out.push_back(std::move(message));
    at = end + 2;
  }
  return out;
}

inline std::vector<OrderedJson> ReadLines(const std::string& text) {
  std::vector<OrderedJson> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_NE(end, std::string::npos) << "a line without its end";
    out.push_back(
        OrderedJson::parse(text.substr(at, end - at), nullptr, false));
    EXPECT_FALSE(out.back().is_discarded());
    at = end == std::string::npos ? text.size() : end + 1;
  }
  return out;
}

// What a model might answer: thoughts, text and calls in any order that an
// AnswerReader gives, cut anywhere.
struct ScriptedAnswer {
  std::vector<AnswerEvent> events = {};
  FinishReason reason = FinishReason::kStop;
  std::string stop_text = {};
  std::string reasoning = {}, text = {};
  std::vector<std::pair<std::string, std::string>> calls = {};
  bool cut_call = false;  // the last call has no end
};

class AnswerScript {
 public:
  explicit AnswerScript(std::uint32_t seed) : random_(seed) {}

  int Below(int n) {
    return static_cast<int>(random_() % static_cast<std::uint32_t>(n));
  }

  ScriptedAnswer Make(const std::vector<std::string>& tools) {
    ScriptedAnswer answer;
    if (Below(2) == 0) {
      answer.reasoning = Words();
      Pieces(AnswerEvent::Kind::kReasoning, -1, answer.reasoning, answer);
    }
    if (Below(4) != 0) {
      answer.text = Words();
      Pieces(AnswerEvent::Kind::kText, -1, answer.text, answer);
    }
    const int n_calls = tools.empty() ? 0 : Below(4);
    for (int i = 0; i < n_calls; ++i) Call(i, n_calls, tools, answer);
    if (answer.cut_call) {
      answer.reason = FinishReason::kLength;
    } else if (n_calls > 0) {
      answer.reason = FinishReason::kToolCalls;
    } else if (Below(3) == 0) {
      answer.reason = FinishReason::kLength;
    } else if (Below(3) == 0) {
      answer.stop_text = "END";
    }
    return answer;
  }

 private:
  std::string Words() {
    static const char* const kWords[] = {
        "a",      " test\n", "\xc3\xa9t\xc3\xa9", "\xf0\x9f\x94\xa5", "\"\\",
        "data: ", "\n\n",    "\xe2\x82\xac"};
    std::string text;
    for (int i = 1 + Below(6); i > 0; --i) text += kWords[Below(8)];
    return text;
  }

  void Pieces(AnswerEvent::Kind kind, int call, const std::string& text,
              ScriptedAnswer& answer) {
    for (std::size_t at = 0; at < text.size();) {
      const auto n = static_cast<std::size_t>(1 + Below(5));
      answer.events.push_back({kind, call, text.substr(at, n)});
      at += n;
    }
  }

  void Call(int i, int n_calls, const std::vector<std::string>& tools,
            ScriptedAnswer& answer) {
    const std::string& name =
        tools[static_cast<std::size_t>(Below(static_cast<int>(tools.size())))];
    std::string arguments =
        OrderedJson{{"input", Words()}, {"n", Below(9)}}.dump();
    answer.events.push_back({AnswerEvent::Kind::kCallBegin, i, name});
    answer.cut_call = i + 1 == n_calls && Below(5) == 0;
    if (answer.cut_call) arguments.resize(arguments.size() / 2);
    Pieces(AnswerEvent::Kind::kCallArguments, i, arguments, answer);
    if (!answer.cut_call) {
      answer.events.push_back({AnswerEvent::Kind::kCallEnd, i, ""});
    }
    answer.calls.emplace_back(name, arguments);
  }

  std::mt19937 random_;
};

struct WrittenAnswer {
  std::string bytes = {};
  std::optional<StoredResponse> record = {};
};

// Begin, events with pings between them, the end.
inline WrittenAnswer Write(const WireRequest& request,
                           const std::vector<ScriptedAnswer>& answers,
                           const Usage& usage,
                           const ServedModel& served = {.id = "true-model"}) {
  const auto writer = MakeWriter(request, served, "r1", 1'700'000'000);
  WrittenAnswer out;
  out.bytes += writer->Begin(usage, {});
  out.bytes += writer->Ping(1, 2, 10);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const int choice = static_cast<int>(i);
    for (const AnswerEvent& event : answers[i].events) {
      out.bytes += writer->Event(choice, event, {});
    }
    out.bytes += writer->Ping(2, 2, 20);
    out.bytes +=
        writer->FinishChoice(choice, answers[i].reason, answers[i].stop_text);
    // A second finish, and what comes after it, is nobody's.
    EXPECT_EQ(writer->FinishChoice(choice, FinishReason::kStop, ""), "");
    EXPECT_EQ(writer->Event(choice, {.text = "late"}, {}), "");
  }
  out.bytes += writer->End(usage, {.tier = "memory"});
  out.record = writer->TakeRecord();
  return out;
}

}  // namespace hearth::serve
