// hearth convert: what stands beside the weights, tokenizers, templates and
// settings, is carried or named.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/hash.h"
#include "convert/huggingface/hf_export.h"
#include "convert_testing.h"
#include "formats/gguf/gguf.h"
#include "formats/huggingface/huggingface.h"
#include "formats/loader.h"
#include "hearth/convert.h"
#include "hearth/engine.h"
#include "model/identity.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// The small llama with its tokenizer.json changed by `change`.
std::string ChangedLlama(const TempDir& dir,
                         const std::function<void(Json&)>& change) {
  const std::string path = dir.path() + "/changed";
  std::filesystem::copy(kHfLlama, path);
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    std::filesystem::permissions(entry, std::filesystem::perms::owner_all);
  }
  Json json = ReadJson(path + "/tokenizer.json");
  change(json);
  std::ofstream(path + "/tokenizer.json") << json.dump();
  return path;
}

// The ids of texts in which added tokens, accents and first words matter.
std::vector<std::vector<std::int32_t>> Ids(const std::string& path) {
  const auto codec = OpenTextCodec(path);
  EXPECT_TRUE(codec.ok()) << codec.error().message;
  std::vector<std::vector<std::int32_t>> all;
  for (const char* text :
       {"Hello world", "x <|im_end|>  y", "word<|im_end|>word",
        "caf\x65\xCC\x81 <|im_start|>a"}) {
    if (codec.ok()) all.push_back(*(*codec)->Encode(text, true));
  }
  return all;
}

struct TokenizerCase {
  const char* says;  // in the note
  std::function<void(Json&)> change;
};
const TokenizerCase kTokenizerCases[] = {
    {"rstrip of 1 added tokens",
     [](Json& t) { t["added_tokens"][3]["rstrip"] = true; }},
    {"lstrip", [](Json& t) { t["added_tokens"][3]["lstrip"] = true; }},
    {"single_word",
     [](Json& t) { t["added_tokens"][3]["single_word"] = true; }},
    {"NFC",
     [](Json& t) {
       t["normalizer"] = {{"type", "NFC"}};
     }},
    {"add_prefix_space",
     [](Json& t) {
       t["pre_tokenizer"]["pretokenizers"].back()["add_prefix_space"] = true;
     }},
    {"the tokens around a text", [](Json& t) {
       t["post_processor"] = Json::parse(
           R"({"type":"TemplateProcessing",
               "single":[{"SpecialToken":{"id":"<|im_start|>","type_id":0}},
                         {"Sequence":{"id":"A","type_id":0}}],
               "pair":[{"Sequence":{"id":"A","type_id":0}},
                       {"Sequence":{"id":"B","type_id":1}}],
               "special_tokens":{"<|im_start|>":{"id":"<|im_start|>",
                 "ids":[2],"tokens":["<|im_start|>"]}}})");
     }}};

TEST(Convert, WhatGgufCannotSayOfATokenizerIsCarriedAndNoted) {
  for (const TokenizerCase& c : kTokenizerCases) {
    const TempDir dir;
    const std::string in = ChangedLlama(dir, c.change);
    const std::string gguf = dir.path() + "/m.gguf", back = dir.path() + "/b";
    const auto report = ConvertModel(in, gguf);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_EQ(report->notes.size(), 1u) << c.says;
    EXPECT_NE(report->notes[0].find(c.says), std::string::npos)
        << report->notes[0];
    const auto ids = Ids(in);
    EXPECT_NE(ids, Ids(kHfLlama)) << c.says << ": the case says nothing";
    EXPECT_EQ(Ids(gguf), ids) << c.says;
    ASSERT_TRUE(ConvertModel(gguf, back).ok());
    EXPECT_EQ(Ids(back), ids) << c.says;
    // Field by field, what was said comes back.
    const Json before = ReadJson(in + "/tokenizer.json");
    const Json after = ReadJson(back + "/tokenizer.json");
    for (const char* part : {"added_tokens", "normalizer"}) {
      EXPECT_EQ(after[part], before[part]) << c.says;
    }
    EXPECT_EQ(after["model"]["vocab"].size(), before["model"]["vocab"].size());
  }
}

TEST(Convert, SplitsThatGgufHasNoNameForAreRefusedByName) {
  const TempDir dir;
  const std::string in = ChangedLlama(dir, [](Json& t) {
    t["pre_tokenizer"]["pretokenizers"][0]["behavior"] = "Removed";
  });
  const auto report = ConvertModel(in, dir.path() + "/m.gguf");
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code, Code::kUnsupported);
  EXPECT_NE(report.error().message.find("Removed"), std::string::npos);
}

// Every key and tensor of a GGUF file, as bytes.
std::map<std::string, std::string> FieldsOf(const std::string& path) {
  const auto file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << path;
  std::map<std::string, std::string> fields;
  for (const GgufEntry& e : file->entries()) {
    fields[std::string(e.key)] = std::to_string(static_cast<int>(e.type)) +
                                 " " + std::to_string(e.count) + " " +
                                 std::string(AsText(e.value));
  }
  for (const GgufTensor& t : file->tensors()) {
    fields["tensor " + std::string(t.name)] =
        t.type + " " + ToHex(Sha256().Update(t.bytes).Finish(), 32);
  }
  return fields;
}

TEST(Convert, IdsTemplatesLicenceAndSettingsMakeTheRound) {
  const TempDir dir;
  const std::string in = ChangedLlama(dir, [](Json&) {});
  Json config = ReadJson(in + "/tokenizer_config.json");
  config["pad_token"] = "<|im_start|>";
  config["chat_template"] = {{{"name", "default"}, {"template", "{{ 1 }}"}},
                             {{"name", "tool_use"}, {"template", "{{ 2 }}"}}};
  std::ofstream(in + "/tokenizer_config.json") << config.dump();
  Json generation = {{"bos_token_id", 0}, {"eos_token_id", {1, 3, 2}},
                     {"do_sample", true}, {"temperature", 0.7},
                     {"top_k", 20},       {"top_p", 0.8},
                     {"min_p", 0.05},     {"repetition_penalty", 1.1}};
  std::ofstream(in + "/generation_config.json") << generation.dump();
  std::ofstream(in + "/README.md")
      << "---\nlicense: apache-2.0\nlanguage:\n- en\n- de\n"
         "tags: [small, \"a: b\"]\ngeneral.author: 'Some One'\n"
         "pipeline_tag: text-generation\nmodel-index:\n- name: x\n---\n# T\n";
  const std::string gguf = dir.path() + "/m.gguf", back = dir.path() + "/b",
                    again = dir.path() + "/n.gguf";
  const auto report = ConvertModel(in, gguf);
  ASSERT_TRUE(report.ok()) << report.error().message;
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("pipeline_tag, model-index"),
            std::string::npos)
      << report->notes[0];
  ASSERT_TRUE(ConvertModel(gguf, back).ok());
  const Json round = ReadJson(back + "/generation_config.json");
  for (const char* member :
       {"bos_token_id", "eos_token_id", "do_sample", "temperature", "top_k",
        "top_p", "min_p", "repetition_penalty"}) {
    EXPECT_EQ(round[member], generation[member]) << member;
  }
  const Json tokens = ReadJson(back + "/tokenizer_config.json");
  for (const char* member :
       {"bos_token", "eos_token", "pad_token", "chat_template"}) {
    EXPECT_EQ(tokens[member], config[member]) << member;
  }
  const std::string card = *ReadTextFile(back + "/README.md");
  for (const char* line :
       {"license: \"apache-2.0\"\n", "language: [\"en\",\"de\"]\n",
        "tags: [\"small\",\"a: b\"]\n", "general.author: \"Some One\"\n"}) {
    EXPECT_NE(card.find(line), std::string::npos) << card;
  }
  // And GGUF to directory to GGUF: every key and tensor, in any order.
  ASSERT_TRUE(ConvertModel(back, again).ok());
  EXPECT_EQ(FieldsOf(again), FieldsOf(gguf));
  // Quantised, the keys go along too.
  const std::string small = dir.path() + "/q.gguf";
  ASSERT_TRUE(QuantizeModel(gguf, small, "Q8_0").ok());
  ASSERT_TRUE(ConvertModel(small, dir.path() + "/c").ok());
  EXPECT_EQ(*ReadTextFile(dir.path() + "/c/README.md"), card);
}

TEST(Convert, ADirectoryKeepsItsOtherFiles) {
  const TempDir dir;
  const std::string in = ChangedLlama(dir, [](Json&) {});
  std::ofstream(in + "/LICENSE") << "free";
  std::ofstream(in + "/special_tokens_map.json") << "{}";
  std::ofstream(in + "/modeling.py") << "x";
  const auto report = ConvertModel(in, dir.path() + "/out");
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(*ReadTextFile(dir.path() + "/out/LICENSE"), "free");
  EXPECT_TRUE(StatFile(dir.path() + "/out/special_tokens_map.json").ok());
  EXPECT_FALSE(StatFile(dir.path() + "/out/modeling.py").ok());
  ASSERT_FALSE(report->notes.empty());
  EXPECT_NE(report->notes[0].find("modeling.py"), std::string::npos);
}

// Members that transformers checks for their type.
TEST(Convert, CountsInConfigJsonAreIntegers) {
  int n_checked = 0;
  for (const char* name : {"gemma3", "llama"}) {
    const LoadedModel model =
        LoadModel(std::string(HEARTH_TEST_DATA "/models/hf/") + name).value();
    Json json = DescribeForHf(model).value().json;
    for (const char* member :
         {"query_pre_attn_scalar", "original_max_position_embeddings"}) {
      for (const Json& where : {json, json["rope_parameters"]}) {
        if (!where.contains(member)) continue;
        EXPECT_TRUE(where[member].is_number_integer()) << name << member;
        ++n_checked;
      }
    }
  }
  EXPECT_GE(n_checked, 1);
}

// transformers before version 5 knows nothing of rope_parameters.
TEST(Convert, OlderRopeKeysSayTheSame) {
  for (const char* name : {"gemma3", "gpt_oss", "llama", "mistral", "qwen2"}) {
    SCOPED_TRACE(name);
    const LoadedModel model =
        LoadModel(std::string(HEARTH_TEST_DATA "/models/hf/") + name).value();
    Json json = DescribeForHf(model).value().json;
    ASSERT_TRUE(json.contains("rope_parameters"));
    ASSERT_TRUE(json["rope_theta"].is_number());
    json.erase("rope_parameters");
    const auto read = ReadHuggingFaceConfig(json, name);
    ASSERT_TRUE(read.ok()) << read.error().message;
    EXPECT_EQ(ModelId(read->config, {}), ModelId(model.config, {}));
  }
}

TEST(Convert, ConfigJsonKeepsWhatChangesNoNumber) {
  const TempDir dir;
  const std::string in = ChangedLlama(dir, [](Json&) {});
  Json config = ReadJson(in + "/config.json");
  config["attention_dropout"] = 0.25;
  config["pad_token_id"] = 2;
  std::ofstream(in + "/config.json") << config.dump();
  const auto report = ConvertModel(in, dir.path() + "/out");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const Json out = ReadJson(dir.path() + "/out/config.json");
  EXPECT_EQ(out["attention_dropout"], 0.25);
  EXPECT_EQ(out["pad_token_id"], 2);
  EXPECT_EQ(out["initializer_range"], config["initializer_range"]);
  EXPECT_EQ(out["dtype"], "bfloat16");
  EXPECT_EQ(out["torch_dtype"], "bfloat16");
  ASSERT_FALSE(report->notes.empty());
  EXPECT_NE(report->notes.back().find("pretraining_tp"), std::string::npos)
      << report->notes.back();
  EXPECT_EQ(report->notes.back().find("attention_dropout"), std::string::npos);
}

TEST(Convert, TemplatesInFilesOfTheirOwnReachTheGguf) {
  const TempDir dir;
  const std::string in = ChangedLlama(dir, [](Json&) {});
  std::ofstream(in + "/chat_template.jinja") << "usual";
  std::filesystem::create_directory(in + "/additional_chat_templates");
  std::ofstream(in + "/additional_chat_templates/tool_use.jinja") << "tools";
  const std::string gguf = dir.path() + "/m.gguf";
  ASSERT_TRUE(ConvertModel(in, gguf).ok());
  const auto file = GgufFile::Open(gguf);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(*file->Text("tokenizer.chat_template"), "usual");
  EXPECT_EQ(*file->Text("tokenizer.chat_template.tool_use"), "tools");
}

// A vocabulary without merges: the built-in model as the GPT-2 nearest to it.
TEST(Convert, PlainBytesMakeAGgufThatItsReaderTakes) {
  const TempDir dir;
  const std::string tiny = dir.path() + "/t.tinygpt", hf = dir.path() + "/hf";
  ASSERT_TRUE(InitModel("tiny", tiny, 0, false, 1).ok());
  ASSERT_TRUE(ConvertModel(tiny, hf).ok());
  Json config = ReadJson(hf + "/config.json");
  config["activation_function"] = "gelu_new";
  std::ofstream(hf + "/config.json") << config.dump();
  const auto report = ConvertModel(hf, dir.path() + "/m.gguf");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto codec = OpenTextCodec(dir.path() + "/m.gguf");
  ASSERT_TRUE(codec.ok()) << codec.error().message;
  EXPECT_EQ(*(*codec)->Encode("a\xC3\xA9", true),
            (std::vector<std::int32_t>{'a', 0xC3, 0xA9}));
  EXPECT_LT(Distance(LogitsOf(hf), LogitsOf(dir.path() + "/m.gguf")), 1e-5);
}

}  // namespace
}  // namespace hearth
