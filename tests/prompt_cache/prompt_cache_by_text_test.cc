// Prompts found by their text where the ids differ: what was sampled need not
// be what the tokenizer gives for the same text.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using Tokens = std::vector<std::int32_t>;

// What each id stands for behind other text.
std::vector<std::string> Pieces(const TextCodec& codec) {
  const std::int32_t before = codec.Encode("x", false)->back();
  const std::string start = *codec.Decode(std::vector{before});
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < codec.vocab_size(); ++id) {
    const auto both = codec.Decode(std::vector{before, id});
    pieces.push_back(both.ok() && both->starts_with(start)
                         ? both->substr(start.size())
                         : "");
  }
  return pieces;
}

// The ids with most tokens spelled letter by letter, as a model may sample
// them.
Tokens SpelledOut(const TextCodec& codec, const Tokens& ids) {
  const std::vector<std::string> pieces = Pieces(codec);
  Tokens out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    Tokens letters;
    for (const char c : pieces[static_cast<std::size_t>(ids[i])]) {
      const auto found =
          std::find(pieces.begin(), pieces.end(), std::string(1, c));
      if (found == pieces.end()) letters.clear();
      if (found == pieces.end()) break;
      letters.push_back(static_cast<std::int32_t>(found - pieces.begin()));
    }
    if (i < 4 || letters.empty()) letters = {ids[i]};
    out.insert(out.end(), letters.begin(), letters.end());
  }
  return out;
}

TEST(PromptCacheByText, TheSameTextUnderOtherIdsIsFoundAndContinued) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  std::string text = "Once upon a time there was a little girl named Lily.";
  for (int i = 0; i < 6; ++i) text += " She saw a big red ball and ran to it.";
  const auto plain = Engine::Open({.model_path = kStories260K}).value();
  const TextCodec& codec = plain->codec();
  const auto sampled = SpelledOut(codec, codec.Encode(text, true).value());
  ASSERT_EQ(*codec.Decode(sampled),
            *codec.Decode(codec.Encode(text, true).value()));
  MustAsk(options, sampled);

  const auto asked = codec.Encode(text + " The end was near.", true).value();
  const auto prefer = [&] {
    return Engine::Open(options).value()->PreferStoredIds(asked);
  };
  EXPECT_EQ(prefer().ids, asked) << "off unless asked for";
  EXPECT_EQ(prefer().from_store, 0);
  options.cache_by_text = true;
  const PromptIds ids = prefer();
  EXPECT_EQ(ids.from_store, static_cast<int>(sampled.size()));
  EXPECT_EQ(*codec.Decode(ids.ids), *codec.Decode(asked));
  const Answer hot = MustAsk(options, ids.ids);
  EXPECT_EQ(hot.sync.reused_tokens, ids.from_store);
  // The answer is the one that these ids have without any store.
  EXPECT_EQ(hot.text, MustAsk({.model_path = kStories260K}, ids.ids).text);
}

// Words of six scripts and of signs that take four bytes.
std::string RandomWords(std::mt19937& random, int n) {
  static const char* const kWords[] = {
      " once",
      " there was",
      " a little girl",
      " Lily",
      " played",
      " caf\u00e9",
      " \u00fcber",
      " na\u00efve",
      " \u0434\u043e\u043c",
      " \u043c\u0430\u043b\u044c\u0447\u0438\u043a",
      "\u4f60\u597d",
      "\u6771\u4eac",
      " \u05e9\u05dc\u05d5\u05dd",
      " \u0645\u0631\u062d\u0628\u0627",
      "\U0001f525",
      "\U0001f44d\U0001f3fd",
      ".",
      ",",
      "\n",
      "  ",
      "!",
      "e\u0301"};
  std::string text;
  for (int i = 0; i < n; ++i) text += kWords[random() % std::size(kWords)];
  return text;
}

// Ids of a text that stands behind another one, cut as sampling may cut it: any
// tokens that spell it.
Tokens SampledIds(const TextCodec& codec,
                  const std::vector<std::string>& pieces,
                  const std::string& text, std::mt19937& random) {
  const std::size_t n_before = codec.Encode("x", false)->size();
  Tokens out;
  for (std::size_t at = 0; at < text.size();) {
    Tokens fitting;
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      const std::string& piece = pieces[id];
      if (!piece.empty() && text.compare(at, piece.size(), piece) == 0) {
        fitting.push_back(static_cast<std::int32_t>(id));
      }
    }
    if (!fitting.empty()) {
      out.push_back(fitting[random() % fitting.size()]);
      at += pieces[static_cast<std::size_t>(out.back())].size();
      continue;
    }
    // A character without a token: its bytes.
    std::size_t end = at + 1;
    while (end < text.size() && (text[end] & 0xc0) == 0x80) ++end;
    const Tokens spelled =
        codec.Encode("x" + text.substr(at, end - at), false).value();
    out.insert(out.end(),
               spelled.begin() + static_cast<std::ptrdiff_t>(n_before),
               spelled.end());
    at = end;
  }
  return out;
}

// Conversations of many scripts that come back as text, each turn in a process
// of its own. HEARTH_TURNS=1037 makes as many turns.
TEST(PromptCacheByText, ATurnComputesWhatIsNewInAnyScript) {
  const char* wanted = std::getenv("HEARTH_TURNS");
  const int n_turns = wanted == nullptr ? 30 : std::atoi(wanted);
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.context_tokens = 8192;
  options.cache_by_text = true;
  std::mt19937 random(18);
  std::string text;
  int n_sampled_otherwise = 0, most = 0;
  for (int turn = 0; turn < n_turns; ++turn) {
    const auto engine = Engine::Open(options).value();
    const TextCodec& codec = engine->codec();
    const auto pieces = Pieces(codec);
    if (turn % 15 == 0) text.clear();  // another conversation
    const std::string question =
        RandomWords(random, 1 + static_cast<int>(random() % 12));
    text += question;
    const auto ids =
        engine->PreferStoredIds(codec.Encode(text, true).value()).ids;
    ASSERT_EQ(*codec.Decode(ids), *codec.Decode(*codec.Encode(text, true)));
    const auto session = engine->NewSession().value();
    const auto sync = session->Sync(ids, nullptr);
    ASSERT_TRUE(sync.ok()) << sync.error().message;
    // A token over the end of the last answer, and the few tokens that wait
    // for the next save (docs/decisions/0031-small-growth-waits.md).
    const auto n_new = static_cast<int>(codec.Encode(question, true)->size());
    const int n_again = sync->prompt_tokens - sync->reused_tokens - n_new;
    EXPECT_LE(n_again, 64) << "turn " << turn << ": " << sync->miss_reason;
    most = std::max(most, n_again);

    const std::string answer =
        RandomWords(random, 1 + static_cast<int>(random() % 20));
    Tokens all = codec.Encode(text + answer, true).value();
    // Most answers are sampled in the tokenizer's ids, some in others, and some
    // are cut inside a character, which their text then has not.
    if (random() % 4 == 0 ||
        !std::equal(ids.begin(), ids.end(), all.begin(),
                    all.begin() + static_cast<std::ptrdiff_t>(
                                      std::min(ids.size(), all.size())))) {
      all = ids;
      const Tokens sampled = SampledIds(codec, pieces, answer, random);
      all.insert(all.end(), sampled.begin(), sampled.end());
    }
    if (random() % 4 == 0 && all.size() > ids.size() + 1) all.pop_back();
    text += codec.Decode(all)->substr(codec.Decode(ids)->size());
    n_sampled_otherwise += all != *codec.Encode(text, true);
    ASSERT_TRUE(session->Sync(all, nullptr).ok());
    session->Persist();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  EXPECT_GT(n_sampled_otherwise, n_turns / 2);
  std::printf("%d turns, %d tokens computed again at most\n", n_turns, most);
}

}  // namespace
}  // namespace hearth
