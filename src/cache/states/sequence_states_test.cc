#include "cache/states/sequence_states.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace hearth {
namespace {

// A convolution's inputs alone: what they are behind each token is plain to
// see. Three taps, two channels.
KvSpec InputsOnly() {
  KvSpec spec;
  spec.states = {{StateRule::kLastInputs, {2, 2}}};
  return spec;
}

// A step that appends the inputs (first, first), (first + 1, first + 1), ...
void Append(SequenceStates& states, int at, int n, float first) {
  ASSERT_TRUE(states.Begin(at, n).ok());
  std::vector<float> all(states.Read(0), states.Read(0) + 4);
  for (int t = 0; t < n; ++t) {
    all.insert(all.end(), 2, first + static_cast<float>(t));
  }
  std::copy(all.end() - 4, all.end(), states.Write(0));
  if (float* journal = states.Journal(0)) {
    std::copy(all.begin() + 4, all.end(), journal);
  }
  states.Commit();
}

// What the next step would read.
std::vector<float> Now(SequenceStates& states, int at) {
  EXPECT_TRUE(states.Begin(at, 1).ok());
  std::vector<float> now(states.Read(0), states.Read(0) + 4);
  states.Abandon();
  return now;
}

TEST(SequenceStates, TheyStartAsZeros) {
  SequenceStates states(InputsOnly());
  EXPECT_EQ(Now(states, 0), (std::vector<float>{0, 0, 0, 0}));
  Append(states, 0, 3, 1);
  EXPECT_EQ(Now(states, 3), (std::vector<float>{2, 2, 3, 3}));
  Append(states, 3, 1, 4);
  states.Rewind(0);
  EXPECT_EQ(Now(states, 0), (std::vector<float>{0, 0, 0, 0}))
      << "also in memory that was written before";
}

TEST(SequenceStates, AShortStepIsReplayedToAnyOfItsTokens) {
  for (int kept = 0; kept <= 5; ++kept) {
    SequenceStates states(InputsOnly());
    Append(states, 0, 40, 1);
    Append(states, 40, 5, 41);
    ASSERT_EQ(states.RewindableTo(40 + kept), 40 + kept);
    states.Rewind(40 + kept);
    const auto last = static_cast<float>(40 + kept);
    EXPECT_EQ(Now(states, 40 + kept),
              (std::vector<float>{last - 1, last - 1, last, last}));
  }
}

TEST(SequenceStates, ALongStepIsCutToItsStart) {
  SequenceStates states(InputsOnly());
  Append(states, 0, 40, 1);
  Append(states, 40, SequenceStates::kJournalTokens + 1, 41);
  EXPECT_EQ(states.RewindableTo(60), 40);
  EXPECT_EQ(states.RewindableTo(39), 0);
}

TEST(SequenceStates, AnAbandonedStepChangesNothing) {
  SequenceStates states(InputsOnly());
  Append(states, 0, 3, 1);
  ASSERT_TRUE(states.Begin(3, 2).ok());
  std::fill_n(states.Write(0), 4, 99.0f);
  states.Abandon();
  EXPECT_EQ(Now(states, 3), (std::vector<float>{2, 2, 3, 3}));
}

TEST(SequenceStates, AForkAndWhatIsKeptOutliveWhatComesAfter) {
  SequenceStates states(InputsOnly());
  Append(states, 0, 3, 1);
  states.Keep();
  SequenceStates fork = states.Fork();
  for (int at = 3; at < 90; ++at) Append(states, at, 1, 50);
  EXPECT_EQ(Now(fork, 3), (std::vector<float>{2, 2, 3, 3}));
  ASSERT_EQ(states.RewindableTo(80), 3);
  states.Rewind(3);
  EXPECT_EQ(Now(states, 3), (std::vector<float>{2, 2, 3, 3}));
}

TEST(SequenceStates, DecodingTakesNoMemoryBeyondTheFirstSteps) {
  SequenceStates states(InputsOnly());
  for (int at = 0; at < 3; ++at) Append(states, at, 1, 1);
  const std::uint64_t held = states.held_bytes();
  for (int at = 3; at < 50; ++at) Append(states, at, 1, 1);
  EXPECT_EQ(states.held_bytes(), held);
}

TEST(SequenceStates, OfASpecWithoutAnyNothingIsAsked) {
  SequenceStates states{KvSpec()};
  EXPECT_TRUE(states.Begin(5, 7).ok());
  states.Commit();
  EXPECT_EQ(states.RewindableTo(6), 6);
  states.Rewind(6);
  EXPECT_EQ(states.held_bytes(), 0u);
}

}  // namespace
}  // namespace hearth
