#include "formats/gguf/gguf.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "testing/gguf_builder.h"

namespace hearth {
namespace {

std::vector<std::byte> Numbers(std::size_t n) {
  std::vector<std::byte> out;
  for (std::size_t i = 0; i < n; ++i) AppendLe(out, static_cast<float>(i));
  return out;
}

GgufBuilder Sample() {
  GgufBuilder b;
  b.Text("general.architecture", "llama")
      .Int("n", 7)
      .Float("f", 0.5f)
      .Bool("yes", true)
      .Texts("words", {"a", "", "\xe2\x96\x81the"})
      .Array<float>("scores", 6, {1.0f, -2.0f})
      .Array<std::int32_t>("kinds", 5, {1, -3, 6})
      .Tensor("w", {2, 3}, 0, Numbers(6))
      .Tensor("v", {4}, 0, Numbers(4));
  return b;
}

Error ErrorOf(ByteSpan bytes) {
  const auto file = GgufFile::Parse(bytes, "m.gguf");
  EXPECT_FALSE(file.ok());
  return file.ok() ? Error{Code::kIo, ""} : file.error();
}

TEST(Gguf, ValuesComeBackAsTheyWereWritten) {
  const auto bytes = Sample().Build();
  const auto file = GgufFile::Parse(bytes, "m.gguf");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->Text("general.architecture"), "llama");
  EXPECT_EQ(*file->Int("n"), 7);
  EXPECT_EQ(*file->Float("f", 0), 0.5);
  EXPECT_EQ(*file->Bool("yes", false), true);
  EXPECT_EQ(*file->TextArray("words"),
            (std::vector<std::string_view>{"a", "", "\xe2\x96\x81the"}));
  EXPECT_EQ(*file->FloatArray("scores"), (std::vector<float>{1, -2}));
  EXPECT_EQ(*file->IntArray("kinds"), (std::vector<std::int32_t>{1, -3, 6}));
  EXPECT_EQ(*file->Int("missing", 5), 5);

  ASSERT_EQ(file->tensors().size(), 2u);
  const GgufTensor* w = file->FindTensor("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->type, "F32");
  EXPECT_EQ(w->shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(w->bytes.size(), 24u);
  EXPECT_EQ(LoadLe<float>(w->bytes.data() + 20), 5.0f);
  EXPECT_EQ(LoadLe<float>(file->FindTensor("v")->bytes.data()), 0.0f);
}

TEST(Gguf, ExactBytesOfTheFormatPage) {
  // docs/formats/gguf.md, "Example".
  const unsigned char page[] = {
      0x47, 0x47, 0x55, 0x46, 0x03, 0x00, 0x00, 0x00,       // magic, version
      0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,       // one tensor
      0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,       // one entry
      0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 'n',  // key "n"
      0x04, 0x00, 0x00, 0x00, 0x07, 0x00, 0x00, 0x00,       // u32 7
      0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 'w',  // tensor "w"
      0x01, 0x00, 0x00, 0x00,                               // 1 dimension
      0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,       // of 2
      0x01, 0x00, 0x00, 0x00,                               // F16
      0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,       // offset 0
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,                      // zeros up to
                                                            // 96
      0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x00, 0x3c, 0x00, 0xc0};  // 1.0, -2.0
  GgufBuilder b;
  std::vector<std::byte> halves;
  AppendLe(halves, std::uint16_t{0x3c00});
  AppendLe(halves, std::uint16_t{0xc000});
  b.Int("n", 7).Tensor("w", {2}, 1, halves);
  const auto built = b.Build();
  const ByteSpan expected = std::as_bytes(std::span(page));
  ASSERT_EQ(built, std::vector<std::byte>(expected.begin(), expected.end()));
  const auto file = GgufFile::Parse(expected, "page");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->FindTensor("w")->bytes.data(), expected.data() + 96);
}

TEST(Gguf, EveryTruncationIsRefused) {
  const auto bytes = Sample().Build();
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    ASSERT_FALSE(GgufFile::Parse(ByteSpan(bytes).first(n), "m").ok()) << n;
  }
}

TEST(Gguf, CountsBeyondTheFileAreRefusedBeforeAllocation) {
  for (const std::size_t field : {8u, 16u}) {  // tensors, entries
    auto bytes = Sample().Build();
    StoreLe(bytes.data() + field, std::uint64_t{1} << 60);
    EXPECT_EQ(ErrorOf(bytes).code, Code::kCorrupt);
  }
}

TEST(Gguf, HugeLengthsDoNotOverflow) {
  for (const std::uint64_t huge : {~std::uint64_t{0}, std::uint64_t{1} << 62}) {
    GgufBuilder text;
    std::vector<std::byte> length;
    AppendLe(length, huge);
    text.Add("t", 8, length);
    EXPECT_EQ(ErrorOf(text.Build()).code, Code::kCorrupt);
    for (const std::uint32_t element : {8u, 10u}) {  // strings, u64
      GgufBuilder array;
      std::vector<std::byte> head;
      AppendLe(head, element);
      AppendLe(head, huge);
      array.Add("t", 9, head);
      EXPECT_EQ(ErrorOf(array.Build()).code, Code::kCorrupt);
    }
    GgufBuilder tensor;
    tensor.Tensor("w", {huge, 32}, 0, {});
    EXPECT_EQ(ErrorOf(tensor.Build()).code, Code::kCorrupt);
  }
}

TEST(Gguf, DuplicateNamesAreRefused) {
  EXPECT_EQ(ErrorOf(Sample().Int("n", 8).Build()).code, Code::kCorrupt);
  EXPECT_EQ(ErrorOf(Sample().Tensor("w", {1}, 0, Numbers(1)).Build()).code,
            Code::kCorrupt);
}

TEST(Gguf, OverlappingTensorsAreRefused) {
  auto bytes = Sample().Build();
  // The last header field is the offset of "v"; "w" lies at 0 with 24 bytes.
  const std::string needle("\x01\x00\x00\x00\x00\x00\x00\x00v", 9);
  const std::size_t v = AsText(bytes).find(needle);
  ASSERT_NE(v, std::string_view::npos);
  StoreLe(bytes.data() + v + 9 + 4 + 8 + 4, std::uint64_t{0});
  EXPECT_NE(ErrorOf(bytes).message.find("overlap"), std::string::npos);
  StoreLe(bytes.data() + v + 9 + 4 + 8 + 4, std::uint64_t{28});
  EXPECT_NE(ErrorOf(bytes).message.find("aligned"), std::string::npos);
}

TEST(Gguf, ForeignVersionsAreRefusedWithTheReason) {
  auto bytes = Sample().Build();
  StoreLe(bytes.data() + 4, std::uint32_t{2});
  EXPECT_TRUE(GgufFile::Parse(bytes, "m").ok()) << "version 2 is as 3";
  StoreLe(bytes.data() + 4, std::uint32_t{1});
  EXPECT_EQ(ErrorOf(bytes).code, Code::kUnsupported);
  StoreLe(bytes.data() + 4, std::uint32_t{0x03000000});
  EXPECT_NE(ErrorOf(bytes).message.find("big-endian"), std::string::npos);
  StoreLe(bytes.data() + 4, std::uint32_t{4});
  EXPECT_EQ(ErrorOf(bytes).code, Code::kUnsupported);
}

TEST(Gguf, AlignmentMustBeAPowerOfTwo) {
  for (const std::uint32_t bad : {0u, 24u, 0x80000000u}) {
    EXPECT_EQ(ErrorOf(Sample().Int("general.alignment", bad).Build()).code,
              Code::kCorrupt)
        << bad;
  }
  GgufBuilder b;
  b.alignment = 64;
  b.Int("general.alignment", 64)
      .Tensor("a", {1}, 0, Numbers(1))
      .Tensor("b", {1}, 0, Numbers(1));
  const auto bytes = b.Build();
  const auto file = GgufFile::Parse(bytes, "m");
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->FindTensor("b")->bytes.data() - bytes.data(), 192);
}

TEST(Gguf, GettersNameTheKeyAndNeverConvert) {
  const auto bytes = Sample().Build();
  const auto file = GgufFile::Parse(bytes, "m.gguf");
  EXPECT_NE(file->Int("nowhere").error().message.find("\"nowhere\""),
            std::string::npos);
  EXPECT_EQ(file->Int("f").error().code, Code::kCorrupt);
  EXPECT_EQ(file->Text("n", "x").error().code, Code::kCorrupt);
  EXPECT_EQ(file->Bool("n", true).error().code, Code::kCorrupt);
  EXPECT_EQ(file->Float("yes", 0).error().code, Code::kCorrupt);
  EXPECT_EQ(file->TextArray("scores").error().code, Code::kCorrupt);
  EXPECT_EQ(file->IntArray("scores").error().code, Code::kCorrupt);
  EXPECT_EQ(file->IntArray("words").error().code, Code::kCorrupt);
  EXPECT_EQ(file->FloatArray("kinds").error().code, Code::kCorrupt);
  EXPECT_EQ(file->Int("kinds").error().code, Code::kUnsupported)
      << "one value per layer";
}

TEST(Gguf, HostileNamesStayOnOneLineOfTheMessage) {
  const std::string name = "a\n\x1b[2J" + std::string(5000, 'x');
  GgufBuilder b;
  b.Int(name, 1).Int(name, 1);
  const Error error = ErrorOf(b.Build());
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  EXPECT_EQ(error.message.find('\x1b'), std::string::npos);
  EXPECT_LT(error.message.size(), 200u);
}

// Nothing is copied: a large vocabulary costs no time to open.
TEST(Gguf, TextsOfALargeVocabularyPointIntoTheFile) {
  std::vector<std::string> words;
  for (int i = 0; i < 150'000; ++i)
    words.push_back("token" + std::to_string(i));
  GgufBuilder b;
  b.Texts("tokenizer.ggml.tokens", words);
  const auto bytes = b.Build();
  const auto file = GgufFile::Parse(bytes, "m");
  ASSERT_TRUE(file.ok());
  const auto texts = file->TextArray("tokenizer.ggml.tokens").value();
  ASSERT_EQ(texts.size(), words.size());
  const auto* begin = reinterpret_cast<const char*>(bytes.data());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    ASSERT_EQ(texts[i], words[i]);
    ASSERT_GE(texts[i].data(), begin);
    ASSERT_LE(texts[i].data() + texts[i].size(), begin + bytes.size());
  }
}

}  // namespace
}  // namespace hearth
