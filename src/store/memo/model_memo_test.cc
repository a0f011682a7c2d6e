#include "store/memo/model_memo.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

std::vector<FileStamp> OldStamps() {
  return {{1, 2, 3000, 4'000'000'000, 5'000'000'000},
          {1, 7, 8000, 9'000'000'000, 9'500'000'000}};
}

Digest SomeDigest() { return Sha256().Field("content").Finish(); }

TEST(ModelMemo, GivesTheDigestOfTheSameStampsOnly) {
  TempDir dir;
  const ModelMemo memo(SideFiles(dir.path() + "/s"));
  EXPECT_EQ(memo.Find(OldStamps()), std::nullopt);
  ASSERT_TRUE(memo.Save(OldStamps(), SomeDigest()).ok());
  EXPECT_EQ(memo.Find(OldStamps()), SomeDigest());
  for (std::size_t file = 0; file < 2; ++file) {
    for (int field = 0; field < 5; ++field) {
      auto stamps = OldStamps();
      FileStamp& s = stamps[file];
      if (field == 0) ++s.device;
      if (field == 1) ++s.inode;
      if (field == 2) ++s.size;
      if (field == 3) ++s.mtime_ns;
      if (field == 4) ++s.ctime_ns;
      EXPECT_EQ(memo.Find(stamps), std::nullopt) << file << field;
    }
  }
  auto stamps = OldStamps();
  std::swap(stamps[0], stamps[1]);
  EXPECT_EQ(memo.Find(stamps), std::nullopt);
}

TEST(ModelMemo, AFileStillWarmIsNotRemembered) {
  TempDir dir;
  const ModelMemo memo(SideFiles(dir.path() + "/s"));
  auto stamps = OldStamps();
  stamps[1].ctime_ns = std::int64_t{std::time(nullptr) + 3600} * 1'000'000'000;
  ASSERT_TRUE(memo.Save(stamps, SomeDigest()).ok());
  EXPECT_EQ(memo.Find(stamps), std::nullopt);
}

TEST(ModelMemo, EveryDamageIsNoMemo) {
  TempDir dir;
  const ModelMemo memo(SideFiles(dir.path() + "/s"));
  ASSERT_TRUE(memo.Save(OldStamps(), SomeDigest()).ok());
  const fs::path path =
      fs::directory_iterator(dir.path() + "/s/models")->path();
  std::ifstream in(path, std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    std::ofstream(path, std::ios::binary) << bad;
    EXPECT_EQ(memo.Find(OldStamps()), std::nullopt) << i;
    std::ofstream(path, std::ios::binary) << good.substr(0, i);
    EXPECT_EQ(memo.Find(OldStamps()), std::nullopt) << i;
  }
}

TEST(ModelMemo, DoesNotWriteIntoSomebodyElsesDirectory) {
  TempDir dir;
  std::ofstream(dir.path() + "/notes") << "x";
  EXPECT_FALSE(
      ModelMemo(SideFiles(dir.path())).Save(OldStamps(), SomeDigest()).ok());
  EXPECT_FALSE(fs::exists(dir.path() + "/models"));
}

}  // namespace
}  // namespace hearth
