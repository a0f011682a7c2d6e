// The public JSON Schema test suite (Debian: json-schema-test-suite), draft 7,
// against grammars: what a grammar takes must be valid.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "grammar/matching_testing.h"
#include "grammar/schema/json_schema.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;
constexpr const char* kSuite = "/usr/share/json-schema-test-suite/tests/draft7";

struct Counts {
  int groups = 0, refused = 0;
  int valid = 0, taken = 0, invalid = 0, wrongly_taken = 0;
};

void CheckGroup(const Json& group, const std::string& file, Counts& counts) {
  ++counts.groups;
  const auto made =
      grammar::GrammarFromJsonSchema(group["schema"], {.open_objects = true});
  if (!made.ok()) {
    ++counts.refused;
    EXPECT_FALSE(made.error().message.empty());
    return;
  }
  for (const Json& test : group["tests"]) {
    const bool valid = test["valid"].get<bool>();
    const bool taken = grammar::Matches(made->grammar, test["data"].dump());
    ++(valid ? counts.valid : counts.invalid);
    if (valid && taken) ++counts.taken;
    if (!valid && taken) {
      ++counts.wrongly_taken;
      ADD_FAILURE() << file << ": " << group["description"] << ": "
                    << test["description"];
    }
  }
}

TEST(JsonSchemaSuite, NothingInvalidIsTaken) {
  if (!fs::exists(kSuite)) {
    GTEST_SKIP() << "the package json-schema-test-suite is not installed";
  }
  Counts counts;
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kSuite)) {
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  for (const fs::path& path : files) {
    std::ifstream in(path);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    for (const Json& group : Json::parse(text)) {
      CheckGroup(group, path.filename().string(), counts);
    }
  }
  std::printf(
      "%d schemas, %d refused; %d of %d valid values taken, %d of %d "
      "invalid ones\n",
      counts.groups, counts.refused, counts.taken, counts.valid,
      counts.wrongly_taken, counts.invalid);
  EXPECT_GT(counts.groups - counts.refused, 55);
  EXPECT_GT(counts.taken, counts.valid / 3);
}

}  // namespace
}  // namespace hearth
