#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "testing/temp_dir.h"

namespace hearth {
namespace {

TEST(WriteFileAtomically, LeavesTheWholeFileWithMode0600AndNoTemporary) {
  TempDir dir;
  const std::string path = dir.path() + "/f";
  ASSERT_TRUE(WriteFileAtomically(path, AsBytes("one")).ok());
  ASSERT_TRUE(WriteFileAtomically(path, AsBytes("two")).ok());
  EXPECT_EQ(*ReadTextFile(path), "two");
  struct stat st;
  ASSERT_EQ(::stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  int n_files = 0;
  for (const auto& e : std::filesystem::directory_iterator(dir.path())) {
    (void)e;
    ++n_files;
  }
  EXPECT_EQ(n_files, 1);
}

TEST(WriteFileAtomically, FailureKeepsTheOldFile) {
  TempDir dir;
  const std::string path = dir.path() + "/none/f";
  const auto result = WriteFileAtomically(path, AsBytes("x"));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, Code::kNotFound);
}

TEST(MappedFile, MapsContentsAndRefusesWhatIsNoFile) {
  TempDir dir;
  const std::string path = dir.path() + "/f";
  ASSERT_TRUE(WriteFileAtomically(path, AsBytes("hello")).ok());
  auto file = MappedFile::Open(path);
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(AsText(file->bytes()), "hello");
  EXPECT_EQ(MappedFile::Open(dir.path()).error().code, Code::kInvalidArgument);
  EXPECT_EQ(MappedFile::Open(path + "x").error().code, Code::kNotFound);
  std::filesystem::create_symlink(path, dir.path() + "/link");
  EXPECT_TRUE(MappedFile::Open(dir.path() + "/link").ok());
  EXPECT_EQ(MappedFile::Open(dir.path() + "/link", false).error().code,
            Code::kInvalidArgument);
}

TEST(MappedFile, EmptyFileIsAnEmptySpan) {
  TempDir dir;
  const std::string path = dir.path() + "/f";
  ASSERT_TRUE(WriteFileAtomically(path, ByteSpan{}).ok());
  EXPECT_TRUE(MappedFile::Open(path)->bytes().empty());
}

}  // namespace
}  // namespace hearth
