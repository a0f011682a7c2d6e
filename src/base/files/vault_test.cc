#include "base/files/vault.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "base/file.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

Vault::Key CountingKey(std::uint8_t first = 0) {
  Vault::Key key;
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::uint8_t>(first + i);
  }
  return key;
}

std::vector<std::byte> Sealed(const Vault& vault, std::string_view text) {
  const ByteSpan parts[] = {AsBytes(text.substr(0, text.size() / 2)),
                            {},
                            AsBytes(text.substr(text.size() / 2))};
  return vault.Seal(parts).value();
}

TEST(Vault, WhatIsSealedOpensAndNeverLooksTheSame) {
  const Vault vault(CountingKey());
  for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 5000u}) {
    const std::string text(n, 'x');
    const auto sealed = Sealed(vault, text);
    EXPECT_EQ(sealed.size(), Vault::SealedBytes(n));
    EXPECT_TRUE(LooksSealed(sealed));
    const auto opened = vault.Open(sealed, "test");
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    EXPECT_EQ(AsText(opened->bytes), text);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(opened->bytes.data()) % 4096,
              0u);
    EXPECT_NE(Sealed(vault, text), sealed);
  }
}

TEST(Vault, EveryFlippedBitAndEveryCutIsNoticed) {
  const Vault vault(CountingKey());
  const auto sealed = Sealed(vault, "a secret of some length");
  for (std::size_t i = 0; i < sealed.size() * 8; ++i) {
    auto bad = sealed;
    bad[i / 8] ^= static_cast<std::byte>(1 << (i % 8));
    EXPECT_FALSE(vault.Open(bad, "test").ok()) << "bit " << i;
  }
  for (std::size_t n = 0; n < sealed.size(); ++n) {
    EXPECT_FALSE(vault.Open(ByteSpan(sealed).first(n), "test").ok()) << n;
  }
}

TEST(Vault, AnotherKeyIsToldFromDamage) {
  const Vault vault(CountingKey()), other(CountingKey(1));
  EXPECT_NE(vault.key_id(), other.key_id());
  EXPECT_NE(vault.name_key(), other.name_key());
  const auto opened = other.Open(Sealed(vault, "text"), "test");
  EXPECT_EQ(opened.error().code, Code::kIncompatible);
  EXPECT_NE(opened.error().message.find("another key"), std::string::npos);
  EXPECT_EQ(CheckKey(Sealed(vault, "text"), nullptr, "test").error().code,
            Code::kIncompatible);
  EXPECT_EQ(CheckKey(AsBytes("plain"), &vault, "test").error().code,
            Code::kIncompatible);
  EXPECT_TRUE(CheckKey(AsBytes("plain"), nullptr, "test").ok());
}

TEST(Vault, KeyFilesAreBytesOrHexAndNobodyElsesToRead) {
  TempDir dir;
  const std::string path = dir.path() + "/key";
  const auto load = [&](const std::string& text, mode_t mode = 0600) {
    std::ofstream(path, std::ios::binary) << text;
    ::chmod(path.c_str(), mode);
    return Vault::FromKeyFile(path);
  };
  const Vault::Key key = CountingKey();
  const Digest id = Vault(key).key_id();
  const auto raw = load({key.begin(), key.end()});
  ASSERT_TRUE(raw.ok()) << raw.error().message;
  EXPECT_EQ((*raw)->key_id(), id);
  const std::string hex =
      "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
  EXPECT_EQ((*load(hex))->key_id(), id);
  EXPECT_EQ((*load(hex + "\r\n"))->key_id(), id);
  for (const std::string& bad :
       {std::string(), std::string(31, 'x'), std::string(33, 'x'), hex + "0",
        std::string(64, 'g'), std::string(5000, 'x')}) {
    EXPECT_FALSE(load(bad).ok()) << bad.size();
  }
  EXPECT_NE(load(hex, 0640).error().message.find("chmod 600"),
            std::string::npos);
  EXPECT_EQ(Vault::FromKeyFile(dir.path() + "/none").error().code,
            Code::kNotFound);
}

TEST(Vault, OpensTheExampleOfItsPage) {
  const auto page =
      ReadTextFile(HEARTH_TEST_DATA "/../../docs/formats/sealed.md");
  ASSERT_TRUE(page.ok());
  std::vector<std::byte> file(Vault::SealedBytes(5));
  std::istringstream lines(page->substr(page->find("**Example.**")));
  std::string line;
  while (std::getline(lines, line)) {
    if (!line.starts_with("    0")) continue;
    std::istringstream fields(line);
    fields >> std::hex;
    unsigned at = 0, value = 0;
    fields >> at;
    while (fields >> value) file.at(at++) = static_cast<std::byte>(value);
  }
  const auto opened = Vault(CountingKey()).Open(file, "example");
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  EXPECT_EQ(AsText(opened->bytes), "hello");
}

}  // namespace
}  // namespace hearth
