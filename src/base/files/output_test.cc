#include "base/files/output.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/file.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

class Output : public testing::Test {
 protected:
  std::string At(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  std::string Put(const std::string& name, const std::string& text) const {
    std::ofstream(At(name)) << text;
    return At(name);
  }
  static std::string Text(const std::string& path) {
    return *ReadTextFile(path);
  }
  // Names in the folder: no temporary may be among them.
  std::size_t n_files() const {
    return static_cast<std::size_t>(std::distance(
        fs::directory_iterator(dir_.path()), fs::directory_iterator()));
  }

  TempDir dir_;
};

TEST_F(Output, ANewFileAppearsWholeWithTheModeOfTheUmask) {
  const mode_t before = ::umask(027);
  {
    auto file = OutputFile::Create(At("new"), {});
    ASSERT_TRUE(file.ok()) << file.error().message;
    ASSERT_TRUE(file->Append(AsBytes("ab")).ok());
    EXPECT_FALSE(fs::exists(At("new")));
    ASSERT_TRUE(file->Append(AsBytes("c")).ok());
    ASSERT_TRUE(file->Commit().ok());
  }
  ::umask(before);
  EXPECT_EQ(Text(At("new")), "abc");
  EXPECT_EQ(fs::status(At("new")).permissions(), fs::perms(0640));
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(Output, AnAbandonedFileLeavesNothingAndTheOldOneStays) {
  Put("old", "old");
  for (const char* name : {"new", "old"}) {
    auto file = OutputFile::Create(At(name), {.replace = true});
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->Append(AsBytes("half")).ok());
  }
  EXPECT_EQ(n_files(), 1u);
  EXPECT_EQ(Text(At("old")), "old");
}

TEST_F(Output, AnExistingFileIsReplacedOnlyWhenToldOrOfTheSameKind) {
  const std::string path = Put("notes", "mine");
  const auto refused = WriteOutput(path, {}, "new");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kInvalidArgument);
  EXPECT_NE(refused.error().message.find("exists"), std::string::npos);
  const auto kind = [](const std::string& p) { return Text(p) == "ours"; };
  EXPECT_FALSE(WriteOutput(path, {.same_kind = kind}, "new").ok());
  EXPECT_EQ(Text(path), "mine");
  ASSERT_TRUE(WriteOutput(path, {.replace = true}, "ours").ok());
  ASSERT_TRUE(WriteOutput(path, {.same_kind = kind}, "new").ok());
  EXPECT_EQ(Text(path), "new");
}

TEST_F(Output, AFileThatAppearsMeanwhileIsNotReplaced) {
  auto file = OutputFile::Create(At("x"), {});
  ASSERT_TRUE(file.ok());
  Put("x", "somebody else's");
  EXPECT_FALSE(file->Commit().ok());
  EXPECT_EQ(Text(At("x")), "somebody else's");
}

TEST_F(Output, TheInputIsNoTargetUnderAnyName) {
  const std::string in = Put("in", "model");
  fs::create_symlink("in", At("link"));
  fs::create_hard_link(in, At("hard"));
  for (const char* name : {"in", "link", "hard"}) {
    const auto refused =
        CheckOutput(At(name), {.replace = true, .inputs = {in}});
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_NE(refused.error().message.find("is read"), std::string::npos);
  }
}

TEST_F(Output, LinksAreFollowedAndStayLinks) {
  Put("real", "old");
  fs::create_directory(At("sub"));
  fs::create_symlink("../real", At("sub/link"));
  fs::create_symlink("nothing-yet", At("dangling"));
  ASSERT_TRUE(WriteOutput(At("sub/link"), {.replace = true}, "new").ok());
  EXPECT_TRUE(fs::is_symlink(At("sub/link")));
  EXPECT_EQ(Text(At("real")), "new");
  ASSERT_TRUE(WriteOutput(At("dangling"), {}, "made").ok());
  EXPECT_TRUE(fs::is_symlink(At("dangling")));
  EXPECT_EQ(Text(At("nothing-yet")), "made");
}

TEST_F(Output, DevicesAndPipesAreWrittenThrough) {
  ASSERT_TRUE(WriteOutput("/dev/null", {}, "gone").ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  const auto full = WriteOutput("/dev/full", {}, "lost");
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code, Code::kResourceFull);
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  ASSERT_EQ(::mkfifo(At("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = Text(At("pipe")); });
  EXPECT_TRUE(WriteOutput(At("pipe"), {}, "through").ok());
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(At("pipe")));
}

TEST_F(Output, WhatCannotBeWrittenIsKnownBeforeTheWork) {
  Put("file", "x");
  for (const std::string& path :
       {At("none/x"), At("file/x"), dir_.path(), At("new/"), std::string(),
        std::string("/proc/hearth-cannot-be/x")}) {
    EXPECT_FALSE(CheckOutput(path, {.replace = true}).ok()) << path;
  }
  EXPECT_TRUE(CheckOutput(At("x"), {}).ok());
  EXPECT_TRUE(CheckOutput("-", {}).ok());
  EXPECT_EQ(n_files(), 1u);
}

TEST_F(Output, ADirectoryAppearsWholeOrNotAtAll) {
  {
    auto out = OutputDirectory::Create(At("a/b"), false, nullptr);
    ASSERT_TRUE(out.ok()) << out.error().message;
    ASSERT_TRUE(WriteOutput(out->path() + "/f", {}, "1").ok());
  }
  EXPECT_TRUE(fs::is_empty(At("a")));
  fs::create_directory(At("a/b"));  // an empty one is as good as none
  auto out = OutputDirectory::Create(At("a/b/"), false, nullptr);
  ASSERT_TRUE(out.ok()) << out.error().message;
  ASSERT_TRUE(WriteOutput(out->path() + "/f", {}, "1").ok());
  ASSERT_TRUE(out->Commit().ok());
  EXPECT_EQ(Text(At("a/b/f")), "1");
  EXPECT_EQ(std::distance(fs::directory_iterator(At("a/b")), {}), 1);
}

TEST_F(Output, AFullDirectoryIsTakenOnlyWhenToldAndKeepsWhatIsNotOurs) {
  fs::create_directory(At("d"));
  Put("d/stale.json", "old");
  Put("d/config.json", "old");
  Put("d/README.md", "mine");
  EXPECT_FALSE(OutputDirectory::Create(At("d"), false, nullptr).ok());
  auto out = OutputDirectory::Create(
      At("d"), true, [](const std::string& n) { return n.ends_with(".json"); });
  ASSERT_TRUE(out.ok()) << out.error().message;
  ASSERT_TRUE(WriteOutput(out->path() + "/config.json", {}, "new").ok());
  EXPECT_EQ(Text(At("d/config.json")), "old");
  ASSERT_TRUE(out->Commit().ok());
  EXPECT_EQ(Text(At("d/config.json")), "new");
  EXPECT_EQ(Text(At("d/README.md")), "mine");
  EXPECT_EQ(std::distance(fs::directory_iterator(At("d")), {}), 2);
}

// A killed writer's beginning goes with the next write of that file; those of
// other files, of writers that live and what is not hearth's stay.
TEST_F(Output, WhatAKilledWriterLeftGoesWithTheNextWrite) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = OutputFile::Create(At("a.json"), {});
    (void)file->Append(AsBytes(std::string_view("half")));
    auto other = OutputFile::Create(At("a.json.b"), {});
    ::_exit(file.ok() && other.ok() ? 0 : 1);  // as if killed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  Put("a.json.tmp.mine", "not hearth's");
  auto alive = OutputFile::Create(At("a.json"), {});
  ASSERT_TRUE(alive.ok());
  EXPECT_EQ(n_files(), 3u) << "the other file's, mine, and the one that lives";
  ASSERT_TRUE(WriteOutput(At("a.json"), {}, "1").ok());
  EXPECT_EQ(n_files(), 4u);
  ASSERT_TRUE(WriteOutput(At("a.json.b"), {}, "2").ok());
  EXPECT_EQ(n_files(), 4u);
}

}  // namespace
}  // namespace hearth
