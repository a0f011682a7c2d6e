#include "formats/huggingface/safetensors.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

std::string Join(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t n = header.size();
  return std::string(reinterpret_cast<const char*>(&n), 8) + header +
         std::string(data_bytes, '\1');
}

std::string ErrorOf(const std::string& file) {
  const auto parsed = SafetensorsFile::Parse(AsBytes(file), "m");
  EXPECT_FALSE(parsed.ok()) << file.substr(8);
  if (parsed.ok()) return "";
  EXPECT_EQ(parsed.error().code, Code::kCorrupt);
  return parsed.error().message;
}

TEST(Safetensors, WhatIsWrittenComesBack) {
  const TempDir dir;
  const std::string path = dir.path() + "/t.safetensors";
  const std::vector<float> logits = {1, 2, 3, 4, 5, 6};
  const std::vector<std::int32_t> ids = {7, 8};
  const SafetensorsTensor tensors[] = {
      {"logits", "F32", {2, 3}, std::as_bytes(std::span(logits))},
      {"ids \"x\"", "I32", {2}, std::as_bytes(std::span(ids))},
      {"none", "F32", {0, 3}, {}}};
  const std::pair<std::string, std::string> metadata[] = {{"by", "hearth"}};
  ASSERT_TRUE(WriteSafetensors(path, tensors, metadata).ok());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->metadata().at(0).second, "hearth");
  const SafetensorsEntry* t = file->Find("logits");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->dtype, DType::kF32);
  EXPECT_EQ(t->shape, (std::vector<std::uint64_t>{2, 3}));
  EXPECT_EQ(LoadLe<float>(t->bytes.data() + 20), 6.0f);
  t = file->Find("ids \"x\"");
  ASSERT_NE(t, nullptr);
  EXPECT_EQ(t->type, "I32");
  EXPECT_FALSE(t->dtype.has_value());
  EXPECT_NE(file->Find("none"), nullptr);
  EXPECT_EQ(file->Find("nothing"), nullptr);
}

TEST(Safetensors, ExactBytesOfTheFormatPage) {
  // docs/formats/safetensors.md, "Example".
  const TempDir dir;
  const std::string path = dir.path() + "/t.safetensors";
  const std::uint16_t halves[] = {0x3c00, 0xc000};
  const SafetensorsTensor tensor = {
      "w", "F16", {2}, std::as_bytes(std::span(halves))};
  ASSERT_TRUE(WriteSafetensors(path, std::span(&tensor, 1)).ok());
  const std::string expected =
      std::string("\x38\0\0\0\0\0\0\0", 8) +
      R"({"w":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}  )" +
      std::string("\x00\x3c\x00\xc0", 4);
  EXPECT_EQ(*ReadTextFile(path), expected);
}

TEST(Safetensors, WriterRefusesContradictions) {
  const TempDir dir;
  const std::string path = dir.path() + "/t";
  const std::vector<float> four(4);
  const ByteSpan bytes = std::as_bytes(std::span(four));
  const std::vector<std::vector<SafetensorsTensor>> wrong = {
      {{"a", "F32", {3}, bytes}},
      {{"a", "F99", {4}, bytes}},
      {{"a", "F32", {4}, bytes}, {"a", "F32", {4}, bytes}},
      {{"__metadata__", "F32", {4}, bytes}}};
  for (const auto& tensors : wrong) {
    const auto result = WriteSafetensors(path, tensors);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.error().code, Code::kInvalidArgument);
  }
}

TEST(Safetensors, HolesAndOverlapsAreRefused) {
  const auto two = [](const char* a, const char* b) {
    return std::string(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":)") +
           a + R"(},"b":{"dtype":"U8","shape":[2],"data_offsets":)" + b + "}}";
  };
  EXPECT_TRUE(
      SafetensorsFile::Parse(AsBytes(Join(two("[2,4]", "[0,2]"), 4)), "m").ok())
      << "any order of names is fine";
  ErrorOf(Join(two("[0,2]", "[3,5]"), 5));  // a hole
  ErrorOf(Join(two("[0,2]", "[1,3]"), 3));  // an overlap
  ErrorOf(Join(two("[0,2]", "[0,2]"), 2));  // the same place
  ErrorOf(Join(two("[1,3]", "[3,5]"), 5));  // a hole in front
  ErrorOf(Join(two("[0,2]", "[2,4]"), 5));  // a byte left over
  EXPECT_NE(ErrorOf(Join(two("[0,2]", "[2,4]"), 3)).find("cut off"),
            std::string::npos);
  ErrorOf(Join(two("[2,0]", "[2,4]"), 4));  // backwards
}

TEST(Safetensors, MalformedHeadersAreRefused) {
  for (const char* header :
       {"", "[]", "null", "{", "{}x", R"({"a":1})", R"({"a":{}})",
        R"({"a":{"dtype":"U8","shape":[1]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})",
        R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":2}})",
        R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
        R"({"a":{"dtype":"XX","shape":[1],"data_offsets":[0,1]}})",
        R"({"__metadata__":{"a":1}})", R"({"__metadata__":"a"})"}) {
    ErrorOf(Join(header, 1));
  }
}

TEST(Safetensors, BlanksAroundTheHeaderAreFineAndNulBytesAreNot) {
  EXPECT_TRUE(SafetensorsFile::Parse(AsBytes(Join(" {}  ", 0)), "m").ok());
  ErrorOf(Join(std::string("{}\0", 3), 0));
  ErrorOf(Join(std::string("{}\0junk", 7), 0));
}

TEST(Safetensors, RepeatedNamesAreRefused) {
  const std::string one =
      R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]})";
  EXPECT_TRUE(
      SafetensorsFile::Parse(AsBytes(Join("{" + one + "}", 0)), "m").ok());
  EXPECT_NE(ErrorOf(Join("{" + one + "," + one + "}", 0)).find("twice"),
            std::string::npos);
}

TEST(Safetensors, ProductsDoNotOverflow) {
  for (const char* shape :
       {"[4294967296,4294967296]", "[18446744073709551615,2]",
        "[2305843009213693952]", "[99999999999999999999]"}) {
    ErrorOf(Join(std::string(R"({"a":{"dtype":"F64","shape":)") + shape +
                     R"(,"data_offsets":[0,0]}})",
                 0));
  }
}

TEST(Safetensors, EveryTruncationIsRefused) {
  const std::string file =
      Join(R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", 3);
  ASSERT_TRUE(SafetensorsFile::Parse(AsBytes(file), "m").ok());
  for (std::size_t n = 0; n < file.size(); ++n) {
    EXPECT_FALSE(SafetensorsFile::Parse(AsBytes(file).first(n), "m").ok()) << n;
  }
}

}  // namespace
}  // namespace hearth
