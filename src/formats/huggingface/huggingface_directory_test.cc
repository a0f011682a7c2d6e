// What else lies in a directory of a model, and what of it is read, passed over
// or refused.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "formats/huggingface/huggingface_testing.h"
#include "formats/huggingface/python_json.h"
#include "formats/loader.h"
#include "model/identity.h"
#include "testing/expect_refused.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

TEST(HuggingFace, EndOfTextIdsAreJoinedFromBothFiles) {
  const TempDir dir;
  WriteModel(dir.path(), R"(,"eos_token_id":2,"bos_token_id":1)",
             LlamaTensors(true));
  WriteTextFile(dir.path() + "/generation_config.json",
                R"({"eos_token_id":[2,5,999],"bos_token_id":3})");
  const auto model = LoadHuggingFace(dir.path());
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->eos_ids, (std::vector<std::int32_t>{2, 5}));
  EXPECT_EQ(model->bos_id, 3);
  EXPECT_EQ(model->tokenizer_dir, "") << "there is no tokenizer.json";
}

// Two shards and an index; `change` may spoil the index.
Result<LoadedModel> LoadSharded(
    const std::function<void(std::string& index)>& change) {
  const TempDir dir;
  WriteTextFile(dir.path() + "/config.json", TinyHfConfig(SmallestSpec()));
  const auto tensors = LlamaTensors(true);
  std::string index;
  for (int shard = 0; shard < 2; ++shard) {
    const std::string file = std::to_string(shard) + ".safetensors";
    std::vector<TinyTensor> part;
    for (std::size_t i = static_cast<std::size_t>(shard); i < tensors.size();
         i += 2) {
      part.push_back(tensors[i]);
      index += (index.empty() ? "\"" : ",\"") + tensors[i].name + "\":\"" +
               file + "\"";
    }
    EXPECT_TRUE(
        WriteTinySafetensors(dir.path() + "/" + file, part, DType::kF32).ok());
  }
  index = R"({"metadata":{"total_size":1},"weight_map":{)" + index + "}}";
  change(index);
  WriteTextFile(dir.path() + "/model.safetensors.index.json", index);
  return LoadHuggingFace(dir.path());
}

void Replace(std::string& text, const std::string& from,
             const std::string& to) {
  text.replace(text.find(from), from.size(), to);
}

TEST(HuggingFace, ShardsFormOneModel) {
  const auto model = LoadSharded([](std::string&) {});
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->files.size(), 2u);
}

TEST(HuggingFace, ShardIndexMustTellTheTruth) {
  ExpectRefused(LoadSharded([](std::string& s) {
                  Replace(s, "lm_head.weight", "lm_heaX.weight");
                }),
                Code::kCorrupt, "lm_head.weight");
  ExpectRefused(LoadSharded([](std::string& s) {
                  Replace(s, "{\"model",
                          "{\"ghost\":\"0.safetensors\",\"model");
                }),
                Code::kCorrupt, "ghost");
  ExpectRefused(LoadSharded([](std::string& s) {
                  Replace(s, "{\"model",
                          "{\"ghost\":\"9.safetensors\",\"model");
                }),
                Code::kNotFound, "9.safetensors");
  ExpectRefused(LoadSharded([](std::string& s) { s = "{}"; }), Code::kCorrupt,
                "weight_map");
}

TEST(HuggingFace, ShardNamesCannotLeaveTheDirectory) {
  for (const char* name : {"../x.safetensors", "/x.safetensors",
                           "a/b.safetensors", "..", "", "x.bin"}) {
    const auto index = ParseShardIndex(
        std::string(R"({"weight_map":{"a":")") + name + "\"}}", "index");
    ASSERT_FALSE(index.ok()) << name;
    EXPECT_EQ(index.error().code, Code::kCorrupt);
  }
  EXPECT_FALSE(ParseShardIndex(R"({"weight_map":{"a":7}})", "index").ok());
}

TEST(HuggingFace, DirectoryWithoutAModelSaysWhatIsMissing) {
  const TempDir dir;
  ExpectRefused(LoadHuggingFace(dir.path()), Code::kNotFound, "config.json");
  WriteTextFile(dir.path() + "/config.json", TinyHfConfig(SmallestSpec()));
  ExpectRefused(LoadHuggingFace(dir.path()), Code::kNotFound,
                "model.safetensors");
  WriteTextFile(dir.path() + "/pytorch_model.bin", "PK");
  ExpectRefused(LoadHuggingFace(dir.path()), Code::kUnsupported, "PyTorch");
}

TEST(HuggingFace, AbsurdSizesAreRefused) {
  const auto tensors = LlamaTensors(true);
  for (const char* extra :
       {R"(,"num_hidden_layers":0)", R"(,"num_hidden_layers":2147483647)",
        R"(,"head_dim":1000000)", R"(,"vocab_size":-1)",
        R"(,"num_key_value_heads":3)", R"(,"rms_norm_eps":1e300)",
        R"(,"rms_norm_eps":-1)", R"(,"rope_theta":0)",
        R"(,"num_attention_heads":0)", R"(,"hidden_size":1e300)",
        R"(,"max_position_embeddings":99999999999)"}) {
    ExpectRefused(LoadTiny(extra, tensors), Code::kCorrupt, "config.json");
  }
}

TEST(HuggingFace, WeightsInOtherFormsAreNamed) {
  const struct {
    const char *tensor, *words;
  } kinds[] = {
      {"model.layers.0.self_attn.q_proj.qweight", "GPTQ or AWQ"},
      {"model.layers.0.mlp.up_proj.weight.absmax", "bitsandbytes"},
      {"model.layers.0.mlp.up_proj.SCB", "bitsandbytes"},
      {"model.layers.0.mlp.up_proj.biases", "MLX"},
      {"model.layers.0.mlp.up_proj.weight_packed", "compressed-tensors"},
      {"model.layers.0.mlp.up_proj.weight_scale_inv", "FP8"},
      {"language_model.model.norm.weight", "sees images"},
      {"model.visual.merger.norm.weight", "sees images"},
  };
  for (const auto& kind : kinds) {
    auto tensors = LlamaTensors(true);
    tensors.push_back(MakeTensor(kind.tensor, {8}, 1));
    ExpectRefused(LoadTiny("", tensors), Code::kUnsupported, kind.words);
    ExpectRefused(LoadTiny("", tensors), Code::kUnsupported, kind.tensor);
  }
  ExpectRefused(LoadTiny(R"(,"quantization":{"bits":4})", LlamaTensors(true)),
                Code::kUnsupported, "quantised by MLX");
}

TEST(HuggingFace, ClassesThatWriteNoTextAreNamed) {
  const auto refused = [](const std::string& members) {
    return ReadHuggingFaceConfig(
        ParseJson("{\"architectures\":" + members + "}", "c").value(), "c");
  };
  ExpectRefused(refused("[\"XForSequenceClassification\"]"), Code::kUnsupported,
                "sorts texts");
  ExpectRefused(refused("[\"BertModel\"]"), Code::kUnsupported, "embeddings");
  ExpectRefused(refused("[\"XForConditionalGeneration\"],"
                        "\"vision_config\":{}"),
                Code::kUnsupported, "sees images");
  ExpectRefused(refused("[\"Gemma3nForConditionalGeneration\"],"
                        "\"vision_config\":{}"),
                Code::kUnsupported, "Gemma 3n");
  ExpectRefused(refused("[\"HunYuanDenseV1ForCausalLM\"]"), Code::kUnsupported,
                "Hunyuan dense");
  ExpectRefused(refused("[\"NewForCausalLM\"]"), Code::kUnsupported,
                "\"NewForCausalLM\" is not supported; supported are");
}

// A model that sees images, around the tiny one.
void WriteSeeing(const std::string& dir, const std::string& prefix,
                 const std::vector<std::string>& others) {
  WriteTextFile(dir + "/config.json",
                R"({"architectures":["XForConditionalGeneration"],)"
                R"("vision_config":{"depth":1},"tie_word_embeddings":true,)"
                R"("text_config":)" +
                    TinyHfConfig(SmallestSpec(),
                                 R"(,"model_type":"llama","eos_token_id":7)") +
                    "}");
  std::vector<TinyTensor> tensors = LlamaTensors(false);
  for (TinyTensor& t : tensors) t.name = prefix + t.name.substr(6);
  for (const std::string& name : others) {
    tensors.push_back(MakeTensor(name, {8}, 1));
  }
  ASSERT_TRUE(
      WriteTinySafetensors(dir + "/model.safetensors", tensors, DType::kF32)
          .ok());
}

TEST(HuggingFace, OfAModelThatSeesImagesTheTextPartIsRead) {
  const auto alone =
      LoadTiny(R"(,"tie_word_embeddings":true)", LlamaTensors(false));
  ASSERT_TRUE(alone.ok()) << alone.error().message;
  ThreadPool pool(1);
  const Digest content = ContentDigest(*alone, pool);
  for (const char* prefix :
       {"model.language_model.", "language_model.model."}) {
    const TempDir dir;
    WriteSeeing(dir.path(), prefix,
                {"model.visual.merger.norm.weight", "vision_tower.a.weight",
                 "multi_modal_projector.b.bias"});
    const auto model = LoadHuggingFace(dir.path());
    ASSERT_TRUE(model.ok()) << model.error().message;
    EXPECT_EQ(model->config.architecture, "llama");
    EXPECT_TRUE(model->config.tied_head);
    EXPECT_EQ(model->eos_ids, std::vector<std::int32_t>{7});
    EXPECT_EQ(ContentDigest(*model, pool), content);
  }
}

TEST(HuggingFace, AroundATextPartUnknownTensorsAreRefused) {
  const TempDir dir;
  WriteSeeing(dir.path(), "model.language_model.", {"model.ears.weight"});
  ExpectRefused(LoadHuggingFace(dir.path()), Code::kUnsupported,
                "model.ears.weight");
  const TempDir twice;
  WriteSeeing(twice.path(), "model.language_model.", {"model.norm.weight"});
  ExpectRefused(LoadHuggingFace(twice.path()), Code::kCorrupt, "twice");
}

TEST(HuggingFace, NumbersOfPythonAreReadAndNeverUsedAsSettings) {
  const auto tensors = LlamaTensors(true);
  EXPECT_TRUE(LoadTiny(R"(,"time_step_limit":[0.0,Infinity],"a":NaN,"b":"NaN")",
                       tensors)
                  .ok());
  ExpectRefused(LoadTiny(R"(,"attention_bias":-Infinity)", tensors),
                Code::kCorrupt, "attention_bias");
  ExpectRefused(
      LoadTiny(R"(,"rope_scaling":{"type":"linear","factor":NaN})", tensors),
      Code::kCorrupt, "factor");
  const auto json = ParsePythonJson("{\"a\":[-Infinity,\"x\\\"NaN\"]}", "j");
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ((*json)["a"][0], -HUGE_VAL);
  EXPECT_EQ((*json)["a"][1], "x\"NaN");
  EXPECT_FALSE(ParsePythonJson("{\"a\":Infinite}", "j").ok());
}

TEST(HuggingFace, AByteOrderMarkIsPassedOver) {
  const TempDir dir;
  WriteModel(dir.path(), "", LlamaTensors(true));
  WriteTextFile(dir.path() + "/config.json",
                "\xEF\xBB\xBF" + TinyHfConfig(SmallestSpec()));
  EXPECT_TRUE(LoadHuggingFace(dir.path()).ok());
}

}  // namespace
}  // namespace hearth
