#include "serve/journal/journal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

namespace fs = std::filesystem;

Digest Name(int n) {
  return Sha256().Field(static_cast<std::uint64_t>(n)).Finish();
}
SampledIds Answer(int n, int length = 5) {
  SampledIds sampled;
  for (int i = 0; i < length; ++i) sampled.ids.push_back(n * 100 + i);
  sampled.end_id = 2;
  return sampled;
}
std::shared_ptr<const Vault> VaultOf(std::uint8_t byte) {
  Vault::Key key;
  key.fill(byte);
  return std::make_shared<const Vault>(key);
}

class JournalTest : public testing::Test {
 protected:
  std::unique_ptr<Journal> Open(std::shared_ptr<const Vault> vault = nullptr,
                                std::uint64_t budget = Journal::kBudget) {
    auto journal = Journal::Open(dir_.path(), std::move(vault), budget);
    EXPECT_TRUE(journal.ok());
    return *std::move(journal);
  }
  std::string path() const { return dir_.path() + "/journal"; }
  void Flip(std::size_t at) {
    std::fstream file(path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(at));
    const char byte = static_cast<char>(file.get() ^ 0x40);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  }

  TempDir dir_;
};

bool Has(Journal& journal, int n, int length = 5) {
  const auto found = journal.Find(Name(n));
  return found.has_value() && found->ids == Answer(n, length).ids &&
         found->end_id == 2;
}

TEST_F(JournalTest, SurvivesItsProcess) {
  Open()->Put(Name(1), Answer(1));
  const auto journal = Open();
  EXPECT_TRUE(Has(*journal, 1));
  EXPECT_FALSE(journal->Find(Name(2)).has_value());
  EXPECT_EQ(fs::status(path()).permissions() & fs::perms::group_all,
            fs::perms::none);
}

TEST_F(JournalTest, TheNewestOfOneNameCounts) {
  const auto journal = Open();
  journal->Put(Name(1), Answer(7));
  journal->Put(Name(1), Answer(1));
  EXPECT_TRUE(Has(*journal, 1));
  EXPECT_TRUE(Has(*Open(), 1));
}

TEST_F(JournalTest, TwoProcessesSeeEachOther) {
  const auto one = Open(), two = Open();
  one->Put(Name(1), Answer(1));
  two->Put(Name(2), Answer(2));
  one->Put(Name(3), Answer(3));
  for (const auto* journal : {&one, &two}) {
    for (int n = 1; n <= 3; ++n) EXPECT_TRUE(Has(**journal, n)) << n;
  }
}

TEST_F(JournalTest, ADamagedRecordIsLeftOutAlone) {
  {
    const auto journal = Open();
    for (int n = 1; n <= 3; ++n) journal->Put(Name(n), Answer(n));
  }
  const std::size_t record = (fs::file_size(path()) - kJournalHeaderBytes) / 3;
  Flip(kJournalHeaderBytes + record + record - 3);  // an id of the second
  const auto journal = Open();
  EXPECT_TRUE(Has(*journal, 1));
  EXPECT_FALSE(journal->Find(Name(2)).has_value());
  EXPECT_TRUE(Has(*journal, 3));
}

TEST_F(JournalTest, EveryTornEndLeavesWhatIsBeforeAndRoomBehind) {
  std::string whole;
  {
    const auto journal = Open();
    for (int n = 1; n <= 2; ++n) journal->Put(Name(n), Answer(n));
    whole = *ReadTextFile(path());
  }
  const std::size_t first = (whole.size() + kJournalHeaderBytes) / 2;
  for (std::size_t n = 0; n < whole.size(); ++n) {
    std::ofstream(path(), std::ios::binary | std::ios::trunc)
        << whole.substr(0, n);
    const auto journal = Open();
    EXPECT_EQ(Has(*journal, 1), n >= first) << n;
    EXPECT_FALSE(journal->Find(Name(2)).has_value()) << n;
    journal->Put(Name(3), Answer(3));
    EXPECT_TRUE(Has(*Open(), 3)) << n;
  }
}

TEST_F(JournalTest, ADamagedRecordThatIsInUseIsNoAnswer) {
  const auto journal = Open();
  journal->Put(Name(1), Answer(1));
  Flip(fs::file_size(path()) - 2);
  EXPECT_FALSE(journal->Find(Name(1)).has_value());
}

TEST_F(JournalTest, SealedRecordsNeedTheirKey) {
  Open(VaultOf(1))->Put(Name(1), Answer(1));
  EXPECT_TRUE(Has(*Open(VaultOf(1)), 1));
  EXPECT_FALSE(Open(VaultOf(2))->Find(Name(1)).has_value());
  EXPECT_FALSE(Open()->Find(Name(1)).has_value());
  // Each adds its own and leaves the other's alone.
  Open()->Put(Name(2), Answer(2));
  EXPECT_TRUE(Has(*Open(VaultOf(1)), 1));
  EXPECT_TRUE(Has(*Open(), 2));
  const std::string bytes = *ReadTextFile(path());
  const auto name = Name(1).bytes;
  EXPECT_EQ(bytes.find(std::string(name.begin(), name.end())),
            std::string::npos);
}

TEST_F(JournalTest, TheBudgetKeepsTheNewest) {
  const auto journal = Open(nullptr, 20'000);
  for (int n = 0; n < 100; ++n) {
    journal->Put(Name(n), Answer(n, 100));
    EXPECT_LE(fs::file_size(path()), 21'000u);
    EXPECT_TRUE(Has(*journal, n, 100));
  }
  EXPECT_FALSE(journal->Find(Name(0)).has_value());
  EXPECT_TRUE(Has(*Open(), 99, 100));
}

TEST_F(JournalTest, OthersFollowAShorterFile) {
  const auto reader = Open();
  const auto writer = Open(nullptr, 4'000);
  for (int n = 0; n < 30; ++n) writer->Put(Name(n), Answer(n, 100));
  EXPECT_TRUE(Has(*reader, 29, 100));
  reader->Put(Name(77), Answer(77));
  EXPECT_TRUE(Has(*writer, 77));
}

TEST_F(JournalTest, WithoutADirectoryItIsInMemory) {
  const auto journal = Journal::Open("", nullptr, 4'000);
  ASSERT_TRUE(journal.ok());
  for (int n = 0; n < 30; ++n) {
    (*journal)->Put(Name(n), Answer(n, 100));
    EXPECT_TRUE(Has(**journal, n, 100));
  }
  EXPECT_LT((*journal)->n_records(), 12);
}

TEST_F(JournalTest, ALinkIsNotFollowed) {
  std::ofstream(dir_.path() + "/mine") << "precious";
  fs::create_symlink("mine", path());
  EXPECT_FALSE(Journal::Open(dir_.path(), nullptr).ok());
  EXPECT_EQ(*ReadTextFile(dir_.path() + "/mine"), "precious");
}

}  // namespace
}  // namespace hearth::serve
