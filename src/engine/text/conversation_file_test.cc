#include "engine/text/conversation_file.h"

#include <gtest/gtest.h>

#include <string>

#include "testing/expect_refused.h"

namespace hearth {
namespace {

SavedConversation Example() {
  SavedConversation saved;
  saved.messages = OrderedJson::parse(
      R"([{"role":"user","content":"Hi"},{"role":"assistant","content":"Ho"}])");
  saved.prompt = "U: Hi\nA: ";
  saved.answer = "Ho\n";
  saved.ids = {1, 2, 300};
  saved.n_turns = 1;
  saved.tokenizer = "ab";
  saved.chat_template = "cd";
  return saved;
}

// The example with one member replaced by `value`, or removed.
std::string Changed(const char* key, const char* value) {
  OrderedJson json = OrderedJson::parse(ConversationText(Example()));
  if (value == nullptr) {
    json.erase(key);
  } else {
    json[key] = OrderedJson::parse(value);
  }
  return json.dump();
}

TEST(ConversationFile, WhatIsWrittenIsRead) {
  const auto read = ParseConversation(ConversationText(Example()), "c.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(ConversationText(*read), ConversationText(Example()));
  EXPECT_EQ(read->ids, Example().ids);
}

TEST(ConversationFile, FilesOfTheFirstVersionSayNothingOfTheirMaker) {
  const auto read = ParseConversation(
      R"({"hearth_conversation":1,"vocab_size":512,"messages":[],
          "prompt":"p","answer":"a","ids":[1],"turns":2})",
      "c.json");
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->tokenizer, "");
  EXPECT_EQ(read->chat_template, "");
}

TEST(ConversationFile, MalformedMembersAreRefused) {
  const struct {
    const char *key, *value;
  } faults[] = {
      {"hearth_conversation", nullptr},
      {"hearth_conversation", "\"2\""},
      {"messages", nullptr},
      {"messages", "{}"},
      {"messages", "[1]"},
      {"messages", R"([{"role":"user"}])"},
      {"messages", R"([{"role":1,"content":"x"}])"},
      {"messages", R"([{"role":"user","content":["x"]}])"},
      {"prompt", "null"},
      {"answer", "7"},
      {"ids", "[-1]"},
      {"ids", "[1.5]"},
      {"ids", "[2147483648]"},
      {"ids", "[\"1\"]"},
      {"ids", "5"},
      {"turns", "-1"},
      {"turns", "99999999999"},
      {"turns", nullptr},
      {"tokenizer", nullptr},
      {"template", "3"},
  };
  for (const auto& fault : faults) {
    const auto read =
        ParseConversation(Changed(fault.key, fault.value), "c.json");
    ExpectRefused(read, Code::kCorrupt, "c.json: not a saved conversation");
  }
  ExpectRefused(ParseConversation("[]", "c.json"), Code::kCorrupt, "c.json");
  ExpectRefused(ParseConversation("{", "c.json"), Code::kCorrupt, "c.json");
  ExpectRefused(
      ParseConversation(Changed("hearth_conversation", "3"), "c.json"),
      Code::kUnsupported, "newer hearth");
}

}  // namespace
}  // namespace hearth
