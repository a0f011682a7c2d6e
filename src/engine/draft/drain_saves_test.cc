// One deadline for everything that an engine has to save: what its own prompt
// cache takes of it, its draft model has no longer.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/engine_core.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

// Notes how long it was given.
class NotedSource final : public DraftSource {
 public:
  explicit NotedSource(std::vector<double>& given) : given_(given) {}
  std::string Describe() const override { return "noted"; }
  Result<std::unique_ptr<Drafter>> NewDrafter(const SessionOptions&) override {
    return {Code::kUnsupported, "not needed"};
  }
  Result<void> DrainSaves(double seconds_max) override {
    given_.push_back(seconds_max);
    return {Code::kIo, "the draft model's"};
  }

 private:
  std::vector<double>& given_;
};

TEST(DrainSaves, ADraftModelHasWhatIsLeftOfTheOneDeadline) {
  TempDir dir;
  const auto engine = Engine::Open({.model_path = kStories260K,
                                    .n_threads = 1,
                                    .prompt_cache_dir = dir.path() + "/s"})
                          .value();
  std::vector<double> given;
  EngineAccess::Core(*engine).draft = std::make_unique<NotedSource>(given);

  EXPECT_EQ(engine->DrainSaves().error().message, "the draft model's");
  EXPECT_EQ(given, std::vector{0.0}) << "no deadline for either";

  given.clear();
  EXPECT_FALSE(engine->DrainSaves(3600).ok());
  ASSERT_EQ(given.size(), 1u);
  EXPECT_LT(given[0], 3600) << "not an hour for each";
  EXPECT_GT(given[0], 0);

  // A deadline that is over is a very short one: 0 would be none at all.
  given.clear();
  EXPECT_FALSE(engine->DrainSaves(1e-9).ok());
  ASSERT_EQ(given.size(), 1u);
  EXPECT_GT(given[0], 0);
  EXPECT_LE(given[0], 0.001);
}

}  // namespace
}  // namespace hearth
