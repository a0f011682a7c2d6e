#include "convert/gguf/gguf_writer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "formats/gguf/gguf.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

GgufTensorSource Floats(std::string name, std::vector<std::uint64_t> shape,
                        std::vector<float> values) {
  return {std::move(name), DType::kF32, std::move(shape),
          [values](const GgufSink& sink) {
            return sink(std::as_bytes(std::span(values)));
          }};
}

TEST(GgufWriter, WhatIsWrittenIsReadBack) {
  const TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  const std::vector<GgufMetadata> metadata = {
      {"a.u32", std::uint32_t{7}},
      {"a.i32", std::int32_t{-7}},
      {"a.u64", std::uint64_t{1} << 40},
      {"a.float", 0.5f},
      {"a.bool", true},
      {"a.text", std::string("hello")},
      {"a.texts", std::vector<std::string>{"x", "", "yz"}},
      {"a.floats", std::vector<float>{1.5f, -2.0f}},
      {"a.ints", std::vector<std::int32_t>{3, -4}},
      {"a.bools", std::vector<bool>{true, false}}};
  const std::vector<GgufTensorSource> tensors = {
      Floats("w", {2, 3}, {1, 2, 3, 4, 5, 6}), Floats("v", {1}, {9})};
  ASSERT_TRUE(WriteGguf(path, metadata, tensors).ok());

  const auto file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(*file->Int("a.u32"), 7);
  EXPECT_EQ(*file->Int("a.i32"), -7);
  EXPECT_EQ(*file->Int("a.u64"), std::int64_t{1} << 40);
  EXPECT_EQ(*file->Float("a.float", 0), 0.5);
  EXPECT_EQ(*file->Bool("a.bool", false), true);
  EXPECT_EQ(*file->Text("a.text"), "hello");
  EXPECT_EQ(*file->TextArray("a.texts"),
            (std::vector<std::string_view>{"x", "", "yz"}));
  EXPECT_EQ(*file->FloatArray("a.floats"), (std::vector<float>{1.5f, -2.0f}));
  EXPECT_EQ(*file->IntArray("a.ints"), (std::vector<std::int32_t>{3, -4}));
  EXPECT_EQ(file->Find("a.bools")->count, 2u);
  const GgufTensor* w = file->FindTensor("w");
  ASSERT_NE(w, nullptr);
  EXPECT_EQ(w->shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(LoadLe<float>(w->bytes.data() + 20), 6.0f);
  EXPECT_EQ(LoadLe<float>(file->FindTensor("v")->bytes.data()), 9.0f);
}

TEST(GgufWriter, MistakesOfTheCallerLeaveNoFile) {
  const TempDir dir;
  const std::string path = dir.path() + "/m.gguf";
  const auto refused = [&](std::vector<GgufMetadata> metadata,
                           std::vector<GgufTensorSource> tensors, Code code) {
    const auto done = WriteGguf(path, metadata, tensors);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, code) << done.error().message;
    EXPECT_FALSE(std::filesystem::exists(path));
  };
  refused({{"k", 1.0f}, {"k", 2.0f}}, {}, Code::kInvalidArgument);
  refused({}, {Floats("w", {1}, {1}), Floats("w", {1}, {1})},
          Code::kInvalidArgument);
  refused({}, {Floats("w", {2}, {1})}, Code::kInvalidArgument);
  refused({}, {Floats("w", {1}, {1, 2})}, Code::kInvalidArgument);
  refused({}, {Floats("w", {}, {1})}, Code::kInvalidArgument);
  refused({}, {{"w", DType::kQ8_0, {4, 16}, {}}}, Code::kInvalidArgument);
  refused({}, {{"w", DType::kTgInt4, {64}, {}}}, Code::kUnsupported);
}

}  // namespace
}  // namespace hearth
