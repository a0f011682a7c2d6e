#include "text/bpe/compiled_vocab.h"

#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "hearth_test_paths.h"
#include "text/json/tokenizer_json.h"

namespace hearth {
namespace {

std::unique_ptr<Tokenizer> Load(const std::string& name) {
  const std::string path = HEARTH_TEST_DATA "/tokenizers/" + name + ".json";
  return LoadTokenizerJson(ReadTextFile(path).value(), "", name).value();
}

const Digest kSource = TokenizerSource("a", "b");

TEST(CompiledVocab, GivesTheSameIdsTextAndFingerprint) {
  for (const char* name : {"gpt2", "llama", "sentencepiece"}) {
    const auto tokenizer = Load(name);
    const auto bytes = CompileTokenizer(*tokenizer, kSource).value();
    const auto copy = FromCompiled(bytes, kSource, "copy");
    ASSERT_TRUE(copy.ok()) << copy.error().message;
    EXPECT_EQ((*copy)->Fingerprint(), tokenizer->Fingerprint());
    EXPECT_EQ((*copy)->kind(), tokenizer->kind());
    EXPECT_EQ((*copy)->bos_id(), tokenizer->bos_id());
    EXPECT_EQ((*copy)->vocab_size(), tokenizer->vocab_size());
    const std::string text =
        "<s>Hello <|im_start|> caf\xC3\xA9, the 1234 cats\n\n  and more";
    const auto ids = tokenizer->Encode(text).value();
    EXPECT_EQ((*copy)->Encode(text).value(), ids);
    EXPECT_EQ((*copy)->Decode(ids), tokenizer->Decode(ids));
    for (std::int32_t id = 0; id < tokenizer->vocab_size(); ++id) {
      ASSERT_EQ((*copy)->Piece(id), tokenizer->Piece(id));
      ASSERT_EQ((*copy)->IsSpecial(id), tokenizer->IsSpecial(id));
    }
    // Compiling the copy gives the very same file.
    EXPECT_EQ(CompileTokenizer(**copy, kSource).value(), bytes);
  }
}

TEST(CompiledVocab, AnotherSourceIsIncompatible) {
  const auto bytes = CompileTokenizer(*Load("gpt2"), kSource).value();
  const auto made = FromCompiled(bytes, TokenizerSource("a", "c"), "f");
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kIncompatible);
}

TEST(CompiledVocab, TheSourceKeepsItsTwoTextsApart) {
  EXPECT_FALSE(TokenizerSource("ab", "c") == TokenizerSource("a", "bc"));
}

TEST(CompiledVocab, EveryTruncationAndEveryFlippedByteIsRefused) {
  auto bytes = CompileTokenizer(*Load("gpt2"), kSource).value();
  for (std::size_t n = 0; n < bytes.size(); n += n < 300 ? 1 : 97) {
    EXPECT_FALSE(FromCompiled(ByteSpan(bytes).first(n), kSource, "f").ok())
        << n;
  }
  for (std::size_t i = 0; i < bytes.size(); i += i < 300 ? 1 : 41) {
    bytes[i] ^= std::byte{0x10};
    EXPECT_FALSE(FromCompiled(bytes, kSource, "f").ok()) << i;
    bytes[i] ^= std::byte{0x10};
  }
  EXPECT_TRUE(FromCompiled(bytes, kSource, "f").ok());
}

// Someone who writes checksums too must still not make the reader run wild.
TEST(CompiledVocab, ForgedContentIsRefusedOrHarmless) {
  const auto good = CompileTokenizer(*Load("llama"), kSource).value();
  std::mt19937 rng(5);
  for (int round = 0; round < 4000; ++round) {
    auto bytes = good;
    for (int k = 0; k < 3; ++k) {
      const std::size_t at = round % 2 == 0
                                 ? 112 + rng() % 120
                                 : 256 + rng() % (bytes.size() - 256);
      bytes[at] = static_cast<std::byte>(rng());
    }
    StoreLe(bytes.data() + 88, Checksum64(ByteSpan(bytes).subspan(256)));
    StoreLe(bytes.data() + 248, Checksum64(ByteSpan(bytes).first(248)));
    const auto made = FromCompiled(bytes, kSource, "f");
    if (!made.ok()) continue;
    const auto ids = (*made)->Encode("Hello the 12 worlds <|im_start|>");
    if (ids.ok()) (void)(*made)->Decode(*ids);
  }
}

TEST(CompiledVocab, BytesHaveNoCompiledForm) {
  const auto made = CompileTokenizer(*MakeByteTokenizer(), kSource);
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, Code::kInvalidArgument);
}

}  // namespace
}  // namespace hearth
