// hearth quantize and hearth convert: what they write loads, means the same,
// and says what it could not do.
#include "hearth/convert.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "convert/huggingface/hf_export.h"
#include "formats/gguf/gguf.h"
#include "formats/loader.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

const std::string kTinyQ2K = kTestData + "/gguf/tinyl-Q2_K.gguf";

std::vector<std::int32_t> SomeIds(int vocab_size) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < 40; ++i) ids.push_back((i * i * 7 + 11) % vocab_size);
  return ids;
}

std::vector<float> LogitsOf(const std::string& path) {
  auto engine = Engine::Open({.model_path = path});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  if (!engine.ok()) return {};
  auto logits = (*engine)->Logits(SomeIds((*engine)->info().vocab_size), {});
  EXPECT_TRUE(logits.ok());
  return std::move(*logits);
}

// Root mean square of the difference over that of `a`.
double Distance(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  double difference = 0, size = 0;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    size += double{a[i]} * a[i];
  }
  return std::sqrt(difference / size);
}

std::map<std::string, std::uint64_t> TypesOf(const std::string& path) {
  const auto info = InspectModel(path);
  EXPECT_TRUE(info.ok()) << info.error().message;
  return {info->tensor_types.begin(), info->tensor_types.end()};
}

TEST(BlockFormats, AWholeModelRunsInItsOwnFormats) {
  const auto types = TypesOf(kTinyQ2K);
  EXPECT_GT(types.count("Q2_K"), 0u);
  for (const float x : LogitsOf(kTinyQ2K)) ASSERT_TRUE(std::isfinite(x));
}

TEST(Convert, HuggingFaceToGgufGivesTheSameLogitsAndTokens) {
  const TempDir dir;
  for (const std::string& in : {kHfLlama, kHfQwen2}) {
    const std::string out = dir.path() + "/m.gguf";
    const auto report = ConvertModel(in, out, {.replace = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_TRUE(report->notes.empty());
    EXPECT_LT(Distance(LogitsOf(in), LogitsOf(out)), 1e-4) << in;
    const auto before = OpenTextCodec(in);
    const auto after = OpenTextCodec(out);
    ASSERT_TRUE(before.ok() && after.ok());
    const std::string text =
        "It's 12345 \xC3\xA9t\xC3\xA9s,  and\n\n more <|bos|>";
    EXPECT_EQ(*(*before)->Encode(text, true), *(*after)->Encode(text, true));
  }
}

TEST(Convert, GgufToGgufKeepsTensorsAndTokens) {
  const TempDir dir;
  for (const std::string& in : {kStories260K, kTinyQ2K}) {
    const std::string out = dir.path() + "/m.gguf";
    const auto report = ConvertModel(in, out, {.replace = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_EQ(TypesOf(in), TypesOf(out));
    EXPECT_EQ(Distance(LogitsOf(in), LogitsOf(out)), 0.0);
    const auto before = OpenTextCodec(in);
    const auto after = OpenTextCodec(out);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_EQ(*(*before)->Encode("Once upon a time", true),
              *(*after)->Encode("Once upon a time", true));
  }
}

TEST(Convert, GgufAndBackToHuggingFaceGivesTheSameLogitsAndTokens) {
  const TempDir dir;
  for (const std::string& in : {kHfQwen2, kTinyQ2K}) {
    const std::string gguf = dir.path() + "/m.gguf";
    const std::string out = dir.path() + "/hf" + std::to_string(in.size());
    ASSERT_TRUE(ConvertModel(in, gguf, {.replace = true}).ok());
    const auto report = ConvertModel(gguf, out);
    ASSERT_TRUE(report.ok()) << report.error().message;
    // From Q2_K to F32: activations are not rounded to int8 any more.
    const double bound = in == kTinyQ2K ? 0.05 : 1e-5;
    EXPECT_LT(Distance(LogitsOf(in), LogitsOf(out)), bound) << in;
    const auto before = OpenTextCodec(in);
    const auto after = OpenTextCodec(out);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_EQ(*(*before)->Encode("It's 12345, and more", true),
              *(*after)->Encode("It's 12345, and more", true));
  }
}

// Scores become merges: every text gets the ids that it got before.
TEST(Convert, SentencePieceVocabulariesComeOutOfGguf) {
  const TempDir dir;
  const std::string out = dir.path() + "/hf";
  const auto report = ConvertModel(kStories260K, out);
  ASSERT_TRUE(report.ok()) << report.error().message;
  // Rotary pairs lie in another order now, and dot products add up in it.
  EXPECT_LT(Distance(LogitsOf(kStories260K), LogitsOf(out)), 1e-5);
  const auto before = OpenTextCodec(kStories260K);
  const auto after = OpenTextCodec(out);
  ASSERT_TRUE(before.ok() && after.ok());
  for (const std::string text :
       {"Once upon a time, there was a little girl named Lily.", "", " ",
        "  two  spaces\n\nand lines", "caf\xC3\xA9 \xF0\x9F\x99\x82 <s> </s>",
        "aaaaaaaaaaaa thethethe 1234567890"}) {
    for (const bool special : {false, true}) {
      const auto ids = (*before)->Encode(text, special);
      ASSERT_TRUE(ids.ok());
      EXPECT_EQ(*(*after)->Encode(text, special), *ids) << text;
      EXPECT_EQ(*(*after)->Decode(*ids), *(*before)->Decode(*ids)) << text;
    }
  }
}

// The from-scratch models are GPT-2s with the exact GELU.
TEST(Convert, TinygptToHuggingFaceAndBack) {
  const TempDir dir;
  const std::string tiny = dir.path() + "/t.tinygpt";
  ASSERT_TRUE(InitModel("tiny", tiny, 0, false, 1).ok());
  const std::string bytes = "any \xC3\xA9 bytes\x01";
  for (const std::string& in : {tiny, std::string()}) {
    const std::string hf = dir.path() + "/hf" + std::to_string(in.size());
    const std::string back = hf + ".tinygpt";
    // The built-in model has no path; its file is part of the repository.
    const std::string from =
        in.empty() ? kTestData + "/../../models/hearth-stories-10m.tinygpt"
                   : in;
    for (const auto& [a, b] : {std::pair(from, hf), std::pair(hf, back)}) {
      const auto report = ConvertModel(a, b);
      ASSERT_TRUE(report.ok()) << report.error().message;
      EXPECT_EQ(Distance(LogitsOf(from), LogitsOf(b)), 0.0) << b;
      const auto codec = OpenTextCodec(b);
      ASSERT_TRUE(codec.ok()) << codec.error().message;
      EXPECT_EQ((*codec)->Encode(bytes, true)->size(), bytes.size());
    }
    EXPECT_EQ(TypesOf(back), TypesOf(from)) << "fp16 stays fp16";
  }
}

TEST(Convert, WhatTinygptAndGgufCannotSayIsRefused) {
  const TempDir dir;
  ASSERT_TRUE(InitModel("tiny", dir.path() + "/t.tinygpt", 0, false, 1).ok());
  ASSERT_TRUE(InitModel("tiny", dir.path() + "/g.tinygpt", 2, false, 1).ok());
  const struct {
    std::string in, out, says;
  } cases[] = {{kHfLlama, "/x.tinygpt", "RMS norms"},
               {dir.path() + "/t.tinygpt", "/x.gguf", "exact GELU"},
               {dir.path() + "/g.tinygpt", "/x", "fewer KV heads than heads"}};
  for (const auto& c : cases) {
    const auto report = ConvertModel(c.in, dir.path() + c.out);
    ASSERT_FALSE(report.ok()) << c.out;
    EXPECT_EQ(report.error().code, Code::kUnsupported);
    EXPECT_NE(report.error().message.find(c.says), std::string::npos)
        << report.error().message;
    EXPECT_FALSE(StatFile(dir.path() + c.out).ok());
  }
}

TEST(Convert, LlamaRowsFindTheirPlaceAgain) {
  const TempDir dir;
  const std::string out = dir.path() + "/hf";
  const auto report = ConvertModel(kHfLlama, out);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(Distance(LogitsOf(kHfLlama), LogitsOf(out)), 0.0);
}

// --- What goes along ---------------------------------------------------------
Json ReadJson(const std::string& path) {
  const auto text = ReadTextFile(path);
  EXPECT_TRUE(text.ok()) << path;
  return text.ok() ? Json::parse(*text) : Json();
}

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

TEST(Quantize, EveryTypeStaysNearTheModel) {
  const TempDir dir;
  const std::vector<float> expected = LogitsOf(kStories260K);
  const struct {
    const char* type;
    double distance;
  } cases[] = {{"Q8_0", 0.03},  {"q6_k", 0.03},   {"Q5_1", 0.1},
               {"Q5_K_M", 0.1}, {"Q4_K_M", 0.15}, {"IQ4_XS", 0.2},
               {"iq4_nl", 0.2}, {"Q4_1", 0.2},    {"Q4_0", 0.3},
               {"F16", 1e-3},   {"BF16", 0.02},   {"F32", 0}};
  for (const auto& c : cases) {
    const std::string out = dir.path() + "/m.gguf";
    const auto report =
        QuantizeModel(kStories260K, out, c.type, {.replace = true});
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_LE(Distance(expected, LogitsOf(out)), c.distance) << c.type;
  }
}

TEST(Quantize, WhatDoesNotFitIsWrittenWiderAndListed) {
  const TempDir dir;
  const std::string out = dir.path() + "/m.gguf";
  const auto report = QuantizeModel(kStories260K, out, "Q4_K");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto listed = [&](const std::string& text) {
    return std::any_of(report->notes.begin(), report->notes.end(),
                       [&](const std::string& note) {
                         return note.find(text) != std::string::npos;
                       });
  };
  EXPECT_TRUE(
      listed("blk.0.attn_q.weight: rows of 64 do not fit Q4_K; "
             "written as Q5_0"));
  EXPECT_TRUE(
      listed("token_embd.weight: rows of 64 do not fit Q6_K; written "
             "as Q8_0"));
  // 172 is no whole number of blocks of 32.
  EXPECT_TRUE(
      listed("blk.0.ffn_down.weight: rows of 172 do not fit Q4_K; "
             "stays"));
  const auto types = TypesOf(out);
  EXPECT_EQ(types.count("Q4_K"), 0u);
  EXPECT_GT(types.count("Q5_0"), 0u);
}

TEST(Quantize, WhatFitsIsWrittenAsTheMixtureHasIt) {
  const TempDir dir;
  const std::string out = dir.path() + "/m.gguf";
  const auto report = QuantizeModel(kTinyQ2K, out, "Q4_K");
  ASSERT_TRUE(report.ok()) << report.error().message;
  const auto types = TypesOf(out);
  EXPECT_GT(types.count("Q4_K"), 0u);
  EXPECT_GT(types.count("Q6_K"), 0u);
  EXPECT_GT(types.count("F32"), 0u);  // norms
  // Values of two and three bits come through four nearly unchanged.
  EXPECT_LT(Distance(LogitsOf(kTinyQ2K), LogitsOf(out)), 0.2);
  ASSERT_FALSE(report->notes.empty());
  EXPECT_NE(report->notes.back().find("quantised before"), std::string::npos);
}

TEST(Quantize, TheSameBytesEveryTime) {
  const TempDir dir;
  std::string first;
  for (const char* name : {"/a.gguf", "/b.gguf"}) {
    ASSERT_TRUE(QuantizeModel(kTinyQ2K, dir.path() + name, "Q4_K").ok());
    const auto bytes = ReadTextFile(dir.path() + name);
    ASSERT_TRUE(bytes.ok());
    if (first.empty()) first = *bytes;
    EXPECT_TRUE(*bytes == first);
  }
}

TEST(Quantize, RefusalsNameTheReason) {
  const TempDir dir;
  const std::string out = dir.path() + "/m.gguf";
  const auto type = QuantizeModel(kStories260K, out, "Q3_X");
  ASSERT_FALSE(type.ok());
  EXPECT_EQ(type.error().code, Code::kInvalidArgument);
  EXPECT_NE(type.error().message.find("Q3_X"), std::string::npos);
  EXPECT_NE(type.error().message.find("Q4_K_M, "), std::string::npos);
  const auto same = QuantizeModel(kStories260K, kStories260K, "Q8_0");
  ASSERT_FALSE(same.ok());
  EXPECT_EQ(same.error().code, Code::kInvalidArgument);
  ASSERT_TRUE(InitModel("tiny", dir.path() + "/t.tinygpt", 0, false, 1).ok());
  const auto bytes = ConvertModel(dir.path() + "/t.tinygpt", out);
  ASSERT_FALSE(bytes.ok());
  EXPECT_EQ(bytes.error().code, Code::kUnsupported);
  EXPECT_FALSE(StatFile(out).ok());
}

}  // namespace
}  // namespace hearth
