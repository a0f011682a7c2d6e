#include "engine/measure/importance_sums.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

namespace hearth {
namespace {

// Three experts of two rows and four columns in one tensor, and an embedding.
struct Fixture {
  std::vector<std::byte> experts = std::vector<std::byte>(3 * 2 * 4 * 4);
  std::vector<std::byte> embedding = std::vector<std::byte>(8 * 4 * 4);
  LoadedModel model;
  ThreadPool pool{2};

  Fixture() {
    model.tensors.push_back(
        {"token_embd.weight", "F32", {8, 4}, embedding, {}});
    model.tensors.push_back(
        {"blk.0.ffn_up_exps.weight", "F32", {3, 2, 4}, experts, {}});
  }
  static Linear At(const std::vector<std::byte>& bytes, std::size_t offset,
                   std::int64_t n_in) {
    Linear linear;
    linear.w.n_out = 2;
    linear.w.n_in = n_in;
    linear.w.data = bytes.data() + offset;
    return linear;
  }
};

TEST(ImportanceSums, AddsSquaresToTheExpertThatAMatrixIs) {
  Fixture f;
  ImportanceSums sums(f.model, f.pool);
  const float x[] = {1, 2, 3, 4, 99, 0, -1, 0, 2, 99};
  sums.Add(Fixture::At(f.experts, 0, 4), x, 5, 2);
  sums.Add(Fixture::At(f.experts, 64, 4), x, 5, 1);
  sums.Add(Fixture::At(f.experts, 64, 4), x + 5, 5, 1);
  std::string unseen;
  const auto entries =
      sums.Entries([&unseen](const std::string& name, int n, int n_all) {
        unseen =
            name + ": " + std::to_string(n) + " of " + std::to_string(n_all);
      });
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "blk.0.ffn_up_exps.weight");
  EXPECT_EQ(entries[0].counts, (std::vector<float>{2, 0, 2}));
  EXPECT_EQ(entries[0].sums,
            (std::vector<float>{1, 5, 9, 20, 0, 0, 0, 0, 1, 5, 9, 20}));
  EXPECT_EQ(unseen, "blk.0.ffn_up_exps.weight: 1 of 3");
}

TEST(ImportanceSums, LeavesOutWhatIsNoWholeMatrixOfALayer) {
  Fixture f;
  ImportanceSums sums(f.model, f.pool);
  const float x[] = {1, 2, 3, 4};
  const std::byte elsewhere[64] = {};
  Linear other = Fixture::At(f.experts, 0, 4);
  other.w.data = elsewhere;
  sums.Add(other, x, 4, 1);
  sums.Add(Fixture::At(f.embedding, 0, 4), x, 4, 1);
  sums.Add(Fixture::At(f.experts, 16, 4), x, 4, 1);  // from its second row on
  sums.Add(Fixture::At(f.experts, 0, 2), x, 4, 1);   // of other columns
  EXPECT_TRUE(
      sums.Entries([](const std::string&, int, int) { FAIL(); }).empty());
}

}  // namespace
}  // namespace hearth
