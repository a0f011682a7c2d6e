// Streamed answers, read by readers of their own, beside whole ones.
#include <map>

#include "serve/wire/testing/written.h"

namespace hearth::serve {
namespace {

constexpr int kSeeds = 60;
const std::vector<std::string> kTools = {"bash", "ns__read", "patch"};

WireRequest Request(Dialect dialect, bool stream) {
  WireRequest request = {.dialect = dialect, .stream = stream};
  request.include_usage = true;
  request.tools["ns__read"] = {.name = "read", .space = "ns"};
  request.tools["patch"] = {.custom = true, .name = "patch"};
  return request;
}

OrderedJson Whole(Dialect dialect, const std::vector<ScriptedAnswer>& answers) {
  WireRequest request = Request(dialect, false);
  request.n = static_cast<int>(answers.size());
  // Signs of life are blanks before the JSON.
  return OrderedJson::parse(Write(request, answers, {}).bytes);
}

// What a client of chat makes of deltas.
struct ReadChoice {
  std::string content, reasoning, finish;
  std::map<int, OrderedJson> calls;
  int n_finished = 0;
};

void Join(const OrderedJson& delta, ReadChoice& choice) {
  EXPECT_EQ(choice.n_finished, 0) << "a delta after the finish";
  if (delta.contains("content")) choice.content += delta["content"];
  if (delta.contains("reasoning_content")) {
    choice.reasoning += delta["reasoning_content"];
  }
  if (!delta.contains("tool_calls")) return;
  for (const OrderedJson& piece : delta["tool_calls"]) {
    const int index = piece["index"];
    if (piece.contains("id")) {
      EXPECT_EQ(choice.calls.count(index), 0u) << "two beginnings of a call";
      OrderedJson call = piece;
      call.erase("index");
      choice.calls[index] = call;
    } else {
      auto& text = choice.calls.at(index)["function"]["arguments"];
      text = text.get<std::string>() +
             piece["function"]["arguments"].get<std::string>();
    }
  }
}

TEST(ChatWriter, TheWholeAnswerIsTheStreamedOne) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    AnswerScript script(seed);
    std::vector<ScriptedAnswer> answers;
    for (int i = 1 + script.Below(2); i > 0; --i) {
      answers.push_back(script.Make(kTools));
    }
    WireRequest request = Request(Dialect::kChat, true);
    request.n = static_cast<int>(answers.size());
    const auto events = ReadSse(Write(request, answers, {}).bytes);
    ASSERT_TRUE(events.back().done);
    std::map<int, ReadChoice> read;
    for (const SseMessage& event : events) {
      if (event.comment || event.done) continue;
      for (const OrderedJson& choice : event.data["choices"]) {
        ReadChoice& into = read[choice["index"]];
        Join(choice["delta"], into);
        if (choice["finish_reason"].is_null()) continue;
        into.finish = choice["finish_reason"];
        ++into.n_finished;
      }
    }
    const OrderedJson whole = Whole(Dialect::kChat, answers);
    ASSERT_EQ(whole["choices"].size(), answers.size());
    for (const OrderedJson& choice : whole["choices"]) {
      const ReadChoice& streamed = read[choice["index"]];
      const OrderedJson& message = choice["message"];
      const ScriptedAnswer& said = answers[choice["index"].get<std::size_t>()];
      EXPECT_EQ(streamed.n_finished, 1);
      EXPECT_EQ(streamed.finish, choice["finish_reason"]);
      EXPECT_EQ(streamed.content, said.text);
      EXPECT_EQ(streamed.reasoning, said.reasoning);
      EXPECT_EQ(message.value("reasoning", ""), said.reasoning);
      if (!message["content"].is_null()) {
        EXPECT_EQ(message["content"], said.text);
      }
      std::size_t n_calls = 0;
      if (message.contains("tool_calls"))
        n_calls = message["tool_calls"].size();
      const bool unknown = said.cut_call && said.calls.back().first == "patch";
      EXPECT_EQ(n_calls, said.calls.size() - (unknown ? 1 : 0));
      for (std::size_t i = 0; i < n_calls; ++i) {
        const OrderedJson& call = message["tool_calls"][i];
        EXPECT_EQ(call.dump(), streamed.calls.at(static_cast<int>(i)).dump());
      }
    }
  }
}

TEST(MessagesWriter, TheWholeAnswerIsTheStreamedOne) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const ScriptedAnswer answer = AnswerScript(seed).Make(kTools);
    const auto events =
        ReadSse(Write(Request(Dialect::kMessages, true), {answer}, {}).bytes);
    ASSERT_EQ(events[0].event, "message_start");
    ASSERT_EQ(events[1].event, "ping");
    ASSERT_EQ(events.back().event, "message_stop");
    EXPECT_EQ(events[0].data["message"]["usage"]["output_tokens"], 0);
    OrderedJson blocks = OrderedJson::array();
    std::string json;
    bool open = false;
    OrderedJson end;
    for (const SseMessage& event : events) {
      ASSERT_EQ(event.event, event.data["type"]);
      if (event.event == "content_block_start") {
        ASSERT_FALSE(open);
        ASSERT_EQ(event.data["index"], blocks.size());
        blocks.push_back(event.data["content_block"]);
        json.clear();
        open = true;
      } else if (event.event == "content_block_delta") {
        ASSERT_TRUE(open);
        ASSERT_EQ(event.data["index"], blocks.size() - 1);
        const OrderedJson& delta = event.data["delta"];
        if (delta["type"] == "input_json_delta") {
          json += delta["partial_json"];
          continue;
        }
        std::string name = delta["type"];
        name.resize(name.size() - std::string("_delta").size());
        auto& member = blocks.back()[name];
        member = member.get<std::string>() + delta[name].get<std::string>();
      } else if (event.event == "content_block_stop") {
        ASSERT_TRUE(open);
        open = false;
        if (blocks.back()["type"] == "tool_use") {
          blocks.back()["input"] = OrderedJson::parse(json, nullptr, false);
          if (blocks.back()["input"].is_discarded()) {
            EXPECT_TRUE(answer.cut_call);
            blocks.back()["input"] = OrderedJson::object();
          }
        }
      } else if (event.event == "message_delta") {
        EXPECT_TRUE(end.is_null());
        end = event.data;
      }
    }
    EXPECT_FALSE(open);
    const OrderedJson whole = Whole(Dialect::kMessages, {answer});
    EXPECT_EQ(blocks.dump(), whole["content"].dump());
    EXPECT_EQ(end["delta"]["stop_reason"], whole["stop_reason"]);
    EXPECT_EQ(end["delta"]["stop_sequence"], whole["stop_sequence"]);
    EXPECT_EQ(end["usage"], whole["usage"]);
  }
}

TEST(ResponsesWriter, TheFinalItemsAreTheStreamedOnes) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const ScriptedAnswer answer = AnswerScript(seed).Make(kTools);
    const WrittenAnswer written =
        Write(Request(Dialect::kResponses, true), {answer}, {});
    const auto events = ReadSse(written.bytes);
    OrderedJson items = OrderedJson::array();
    std::map<std::string, std::string> grown;
    std::size_t n_open = 0;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const OrderedJson& data = events[i].data;
      ASSERT_EQ(data["type"], events[i].event);
      ASSERT_EQ(data["sequence_number"], i);
      const std::string type = data["type"];
      if (type == "response.output_item.added") {
        ASSERT_EQ(data["output_index"], items.size());
        ASSERT_EQ(n_open++, items.size());
        ASSERT_EQ(data["item"]["status"], "in_progress");
      } else if (type == "response.output_item.done") {
        items.push_back(data["item"]);
        ASSERT_EQ(n_open, items.size());
      } else if (type.find(".delta") != std::string::npos) {
        grown[data["item_id"].get<std::string>() +
              type.substr(0, type.find(".delta"))] += data["delta"];
      } else if (type.find("_text.done") != std::string::npos ||
                 type.find("arguments.done") != std::string::npos) {
        const char* member = data.contains("text") ? "text" : "arguments";
        EXPECT_EQ(data[member], grown[data["item_id"].get<std::string>() +
                                      type.substr(0, type.find(".done"))]);
      }
    }
    ASSERT_EQ(n_open, items.size());
    const OrderedJson& last = events.back().data;
    const OrderedJson& final_response = last["response"];
    EXPECT_EQ(last["type"],
              "response." + final_response["status"].get<std::string>());
    EXPECT_EQ(final_response["output"].dump(), items.dump());
    const OrderedJson whole = Whole(Dialect::kResponses, {answer});
    EXPECT_EQ(whole["output"].dump(), items.dump());
    ASSERT_TRUE(written.record.has_value());
    EXPECT_EQ(written.record->response_json, final_response.dump());
  }
}

TEST(OllamaWriter, TheWholeAnswerIsTheStreamedOne) {
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    const ScriptedAnswer answer = AnswerScript(seed).Make({"bash"});
    const auto lines = ReadLines(
        Write(Request(Dialect::kOllamaChat, true), {answer}, {}).bytes);
    std::string text, thinking;
    OrderedJson calls = OrderedJson::array();
    for (std::size_t i = 0; i < lines.size(); ++i) {
      EXPECT_EQ(lines[i]["done"], i + 1 == lines.size());
      const OrderedJson& message = lines[i]["message"];
      text += message["content"];
      thinking += message.value("thinking", "");
      if (!message.contains("tool_calls")) continue;
      for (const OrderedJson& call : message["tool_calls"]) {
        calls.push_back(call);
      }
    }
    EXPECT_EQ(text, answer.text);
    EXPECT_EQ(thinking, answer.reasoning);
    EXPECT_EQ(calls.size(), answer.calls.size() - (answer.cut_call ? 1 : 0));
    const OrderedJson whole = Whole(Dialect::kOllamaChat, {answer});
    EXPECT_EQ(whole["message"]["content"], text);
    EXPECT_EQ(whole["message"].value("tool_calls", OrderedJson::array()).dump(),
              calls.dump());
    EXPECT_EQ(whole["done_reason"], lines.back()["done_reason"]);
  }
}

TEST(CompletionWriters, TheWholeAnswerIsTheStreamedOne) {
  for (const Dialect dialect :
       {Dialect::kCompletions, Dialect::kLlamaCompletion}) {
    for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
      ScriptedAnswer answer = AnswerScript(seed).Make({});
      if (!answer.reasoning.empty()) continue;  // such prompts have none
      const auto events =
          ReadSse(Write(Request(dialect, true), {answer}, {}).bytes);
      const OrderedJson whole = Whole(dialect, {answer});
      std::string text;
      for (const SseMessage& event : events) {
        if (event.comment || event.done) continue;
        if (dialect == Dialect::kLlamaCompletion) {
          text += event.data["content"];
        } else if (!event.data["choices"].empty()) {
          text += event.data["choices"][0]["text"];
        }
      }
      EXPECT_EQ(text, answer.text);
      EXPECT_EQ(dialect == Dialect::kLlamaCompletion
                    ? whole["content"]
                    : whole["choices"][0]["text"],
                answer.text);
    }
  }
}

}  // namespace
}  // namespace hearth::serve
