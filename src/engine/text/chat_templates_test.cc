#include "engine/text/chat_templates.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "engine/text/tokenizer_factory.h"
#include "formats/gguf/gguf.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

LoadedModel InDirectory(const TempDir& dir) {
  LoadedModel model;
  model.path = dir.path();
  model.tokenizer_source = TokenizerSource::kDirectory;
  model.tokenizer_dir = dir.path();
  return model;
}

// What is picked, or "" for none. `bytes` are kept by the caller.
std::string Picked(const LoadedModel& model, bool with_tools) {
  const auto templates = ReadChatTemplates(model);
  EXPECT_TRUE(templates.ok()) << templates.error().message;
  const auto one = PickChatTemplate(*templates, with_tools, "m");
  EXPECT_TRUE(one.ok()) << one.error().message;
  return *one == nullptr ? "" : (*one)->text;
}

LoadedModel OfGguf(GgufBuilder b, std::vector<std::byte>& bytes) {
  bytes = b.Build();
  LoadedModel model;
  model.tokenizer_source = TokenizerSource::kGguf;
  model.gguf = std::make_shared<const GgufFile>(
      GgufFile::Parse(bytes, "m.gguf").value());
  return model;
}

TEST(ChatTemplates, ToolsPickTheTemplateForThem) {
  const TempDir dir;
  WriteTextFile(dir.path() + "/tokenizer_config.json",
                R"({"chat_template":[{"name":"default","template":"D"},
                    {"name":"tool_use","template":"T"}]})");
  EXPECT_EQ(Picked(InDirectory(dir), false), "D");
  EXPECT_EQ(Picked(InDirectory(dir), true), "T");

  GgufBuilder b;
  b.Text("tokenizer.chat_template", "D")
      .Text("tokenizer.chat_template.tool_use", "T")
      .Texts("tokenizer.chat_templates", {"tool_use"});
  std::vector<std::byte> bytes;
  const LoadedModel gguf = OfGguf(b, bytes);
  EXPECT_EQ(Picked(gguf, false), "D");
  EXPECT_EQ(Picked(gguf, true), "T");
}

TEST(ChatTemplates, OneTemplateServesToolsToo) {
  const TempDir dir;
  WriteTextFile(dir.path() + "/tokenizer_config.json",
                R"({"chat_template":"C"})");
  EXPECT_EQ(Picked(InDirectory(dir), true), "C");
  std::filesystem::remove(dir.path() + "/tokenizer_config.json");
  EXPECT_EQ(Picked(InDirectory(dir), true), "");
  WriteTextFile(dir.path() + "/chat_template.json", R"({"chat_template":"P"})");
  EXPECT_EQ(Picked(InDirectory(dir), false), "P");
}

TEST(ChatTemplates, JinjaFilesComeFirst) {
  const TempDir dir;
  WriteTextFile(dir.path() + "/tokenizer_config.json",
                R"({"chat_template":"C"})");
  WriteTextFile(dir.path() + "/chat_template.jinja", "J");
  EXPECT_EQ(Picked(InDirectory(dir), true), "J");
  std::filesystem::create_directory(dir.path() + "/additional_chat_templates");
  WriteTextFile(dir.path() + "/additional_chat_templates/tool_use.jinja", "T");
  EXPECT_EQ(Picked(InDirectory(dir), true), "T");
  EXPECT_EQ(Picked(InDirectory(dir), false), "J");
}

TEST(ChatTemplates, SeveralWithoutADefaultAreNamed) {
  const NamedTemplate several[] = {{"rag", "R", ""}, {"tool_use", "T", ""}};
  ExpectRefused(PickChatTemplate(several, false, "m"), Code::kNotFound,
                "rag, tool_use");
  EXPECT_EQ(PickChatTemplate(several, true, "m").value()->text, "T");
}

TEST(ChatTemplates, OtherFormsAreRefused) {
  for (const char* value : {"7", "{}", "[1]", R"([{"name":"default"}])"}) {
    const TempDir dir;
    WriteTextFile(dir.path() + "/tokenizer_config.json",
                  std::string("{\"chat_template\":") + value + "}");
    ExpectRefused(ReadChatTemplates(InDirectory(dir)), Code::kCorrupt,
                  "chat_template");
  }
}

TEST(TokenizerWarning, SaysThatTheFileNamesNoPreTokenizer) {
  std::vector<std::byte> bytes;
  GgufBuilder b;
  b.Text("tokenizer.ggml.model", "gpt2");
  EXPECT_NE(TokenizerWarning(OfGguf(b, bytes)).find("tokenizer.ggml.pre"),
            std::string::npos);
  b.Text("tokenizer.ggml.pre", "default");
  EXPECT_EQ(TokenizerWarning(OfGguf(b, bytes)), "");
  GgufBuilder pieces;
  pieces.Text("tokenizer.ggml.model", "llama");
  EXPECT_EQ(TokenizerWarning(OfGguf(pieces, bytes)), "");
}

}  // namespace
}  // namespace hearth
