// Conversations: token ids are the history, and they outlive the process.
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/file.h"
#include "chat/ordered_json.h"
#include "hearth/chat.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

const GenerateOptions kGreedy{.n_tokens_max = 24,
                              .sampling = {.temperature = 0}};

// A template in the manner of ChatML, for a model that has none.
std::string WriteTemplate(const TempDir& dir) {
  const std::string path = dir.path() + "/turns.jinja";
  std::ofstream(path)
      << "{% for m in messages %}[{{ m.role }}] {{ m.content }}"
         "{{ '\\n' }}{% endfor %}"
         "{% if add_generation_prompt %}[assistant] {% endif %}";
  return path;
}

std::unique_ptr<Engine> OpenEngine(const std::string& cache_dir) {
  auto engine = Engine::Open({.model_path = kHfLlama,
                              .prompt_cache_dir = cache_dir,
                              .cache_always = true});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(*engine);
}

TEST(Conversation, EveryTurnReusesTheWholeHistory) {
  TempDir dir;
  auto engine = OpenEngine("");
  auto talk = *OpenConversation(
      *engine, {.template_path = WriteTemplate(dir), .system = "Be brief."});
  int held = 0;
  for (const char* text : {"Tell me of the sea.", "And then?", "Who was it?"}) {
    const auto turn = talk->Turn(text, kGreedy, nullptr, nullptr);
    ASSERT_TRUE(turn.ok()) << turn.error().message;
    // All but the last sampled token is in the cache already.
    EXPECT_GE(turn->sync.reused_tokens, held - 1) << text;
    held = turn->kv.tokens;
    EXPECT_LT(turn->sync.prompt_tokens - turn->sync.reused_tokens, 60);
  }
  EXPECT_EQ(talk->n_turns(), 3);
}

TEST(Conversation, SavedAndLoadedItGoesOnWarmInAnotherProcess) {
  TempDir dir;
  const ConversationOptions options{.template_path = WriteTemplate(dir)};
  std::string want, got;
  int history = 0;
  {
    auto engine = OpenEngine(dir.path() + "/cache");
    auto talk = *OpenConversation(*engine, options);
    for (const char* text : {"One fish, two fish.", "Red fish, blue fish."}) {
      const auto turn = talk->Turn(text, kGreedy, nullptr, nullptr);
      ASSERT_TRUE(turn.ok());
      history = turn->kv.tokens;
    }
    ASSERT_TRUE(talk->Save(dir.path() + "/talk.json").ok());
    want = talk->Turn("More fish?", kGreedy, nullptr, nullptr)->generate.text;
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  auto engine = OpenEngine(dir.path() + "/cache");
  auto talk = *OpenConversation(*engine, options);
  ASSERT_TRUE(talk->Load(dir.path() + "/talk.json").ok());
  const auto turn = talk->Turn("More fish?", kGreedy, nullptr, nullptr);
  ASSERT_TRUE(turn.ok());
  EXPECT_EQ(turn->generate.text, want);
  EXPECT_EQ(turn->sync.reuse_tier, "disk");
  // The answers' KV was stored too, not just the prompts'.
  EXPECT_GE(turn->sync.reused_tokens, history - 1);
}

TEST(Conversation, ATurnTakenBackIsAnsweredTheSameAndNotComputedAgain) {
  TempDir dir;
  auto engine = OpenEngine("");
  auto talk = *OpenConversation(
      *engine, {.template_path = WriteTemplate(dir), .system = "Be brief."});
  EXPECT_EQ(talk->Undo().error().code, Code::kNotFound);
  ASSERT_TRUE(talk->Turn("One fish.", kGreedy, nullptr, nullptr).ok());
  const auto first = talk->Turn("Two fish.", kGreedy, nullptr, nullptr);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*talk->Undo(), "Two fish.");
  EXPECT_EQ(talk->n_turns(), 1);
  const auto again = talk->Turn("Two fish.", kGreedy, nullptr, nullptr);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->generate.text, first->generate.text);
  EXPECT_EQ(again->sync.reused_tokens, again->sync.prompt_tokens - 1);
}

TEST(Conversation, TheOldestTurnIsForgottenAndTheSystemMessageStays) {
  TempDir dir;
  auto engine = OpenEngine("");
  const ConversationOptions options{.template_path = WriteTemplate(dir),
                                    .system = "Be brief."};
  auto talk = *OpenConversation(*engine, options);
  EXPECT_FALSE(talk->DropOldest().ok());
  for (const char* text : {"One fish.", "Two fish."}) {
    ASSERT_TRUE(talk->Turn(text, kGreedy, nullptr, nullptr).ok());
  }
  ASSERT_TRUE(talk->DropOldest().ok());
  EXPECT_EQ(talk->n_turns(), 1);
  const std::string path = dir.path() + "/talk.json";
  ASSERT_TRUE(talk->Save(path).ok());
  std::string kept = *ReadTextFile(path);
  EXPECT_EQ(kept.find("One fish."), std::string::npos);
  EXPECT_NE(kept.find("Two fish."), std::string::npos);
  EXPECT_NE(kept.find("Be brief."), std::string::npos);
  talk->SetSystem("");
  // A conversation takes the place of a conversation.
  ASSERT_TRUE(talk->Save(path).ok());
  EXPECT_EQ(ReadTextFile(path)->find("Be brief."), std::string::npos);
  EXPECT_TRUE(talk->Turn("Red fish.", kGreedy, nullptr, nullptr).ok());
}

TEST(Conversation, AFileThatIsNoConversationIsNotReplaced) {
  TempDir dir;
  auto engine = OpenEngine("");
  auto talk = *OpenConversation(*engine, {.template_path = WriteTemplate(dir)});
  const std::string path = dir.path() + "/notes.txt";
  std::ofstream(path) << "mine";
  EXPECT_EQ(talk->Save(path).error().code, Code::kInvalidArgument);
  EXPECT_EQ(CheckConversationFile(path).error().code, Code::kInvalidArgument);
  EXPECT_EQ(*ReadTextFile(path), "mine");
}

TEST(Conversation, DamagedOrForeignFilesAreRefusedAndChangeNothing) {
  TempDir dir;
  auto engine = OpenEngine("");
  auto talk = *OpenConversation(*engine, {.template_path = WriteTemplate(dir)});
  ASSERT_TRUE(talk->Turn("Hello.", kGreedy, nullptr, nullptr).ok());
  const std::string path = dir.path() + "/bad.json";
  for (const char* text :
       {"", "[]", "{\"hearth_conversation\":1}", "nonsense",
        "{\"hearth_conversation\":1,\"messages\":[7],\"ids\":[1],"
        "\"prompt\":\"\",\"answer\":\"\",\"turns\":1}"}) {
    std::ofstream(path) << text;
    EXPECT_FALSE(talk->Load(path).ok()) << text;
    EXPECT_EQ(talk->n_turns(), 1);
  }
}

// A file of another vocabulary of the same size, of another template, and of
// the time when files did not say: the messages go on, the ids do not.
TEST(Conversation, IdsOfAnotherVocabularyAreNeverUsed) {
  TempDir dir;
  const std::string path = dir.path() + "/talk.json";
  const ConversationOptions options{.template_path = WriteTemplate(dir)};
  auto engine = OpenEngine("");
  auto first = *OpenConversation(*engine, options);
  ASSERT_TRUE(first->Turn("Hello.", kGreedy, nullptr, nullptr).ok());
  ASSERT_TRUE(first->Save(path).ok());
  const OrderedJson saved = OrderedJson::parse(ReadTextFile(path).value());
  const auto go_on = [&](const OrderedJson& file) {
    std::ofstream(path) << file.dump();
    auto talk = *OpenConversation(*engine, options);
    const auto loaded = talk->Load(path);
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    EXPECT_EQ(talk->n_turns(), 1);
    const auto turn = talk->Turn("More.", kGreedy, nullptr, nullptr);
    EXPECT_TRUE(turn.ok());
    return *turn;
  };
  const auto changed = [&](const char* key, const OrderedJson& value) {
    OrderedJson file = saved;
    file[key] = value;
    return file;
  };
  OrderedJson old = changed("hearth_conversation", 1);
  old.erase("tokenizer");
  old.erase("template");
  const std::string want = go_on(old).generate.text;
  EXPECT_TRUE(go_on(saved).sync.warnings.empty());
  for (OrderedJson file :
       {changed("tokenizer", "00"), changed("template", "00"), old}) {
    // Ids that would spell something else, if they were used.
    for (OrderedJson& id : file["ids"]) id = 100;
    const TurnReport turn = go_on(file);
    EXPECT_EQ(turn.generate.text, want);
    ASSERT_EQ(turn.sync.warnings.size(), 1u);
    EXPECT_NE(turn.sync.warnings[0].find("encoded again"), std::string::npos);
  }
}

TEST(Conversation, ModelWithoutATemplateIsRefusedWithTheRemedy) {
  auto engine = Engine::Open({.model_path = kStories260K});
  ASSERT_TRUE(engine.ok());
  const auto talk = OpenConversation(**engine, {});
  ASSERT_FALSE(talk.ok());
  EXPECT_EQ(talk.error().code, Code::kNotFound);
  EXPECT_NE(talk.error().message.find("give one in a file"), std::string::npos);
}

TEST(Generate, StopTextEndsTheAnswerAndIsNeverShown) {
  auto engine = Engine::Open({.model_path = kStories260K});
  ASSERT_TRUE(engine.ok());
  const auto ids =
      *(*engine)->codec().Encode("Once upon a time there was", true);
  const auto text_with = [&](const std::string& stop, std::string& streamed) {
    auto session = *(*engine)->NewSession();
    EXPECT_TRUE(session->Sync(ids, nullptr).ok());
    const auto report = session->Generate(
        {.n_tokens_max = 80,
         .stop_texts = stop.empty() ? std::vector<std::string>{}
                                    : std::vector<std::string>{stop},
         .sampling = {.temperature = 0}},
        [&](const Token& token) {
          streamed += token.text;
          return true;
        });
    return report->text;
  };
  std::string streamed;
  const std::string whole = text_with("", streamed);
  EXPECT_EQ(streamed, whole);
  const std::string stop = whole.substr(30, 3);
  const std::string want = whole.substr(0, whole.find(stop));
  streamed.clear();
  EXPECT_EQ(text_with(stop, streamed), want);
  EXPECT_EQ(streamed, want);
  streamed.clear();
  EXPECT_EQ(text_with("@@@@", streamed), whole)
      << "held text is given at the end";
  EXPECT_EQ(streamed, whole);
}

TEST(DefaultModel, TalksInTurnsThatEnd) {
  auto engine = Engine::Open({});
  ASSERT_TRUE(engine.ok());
  auto talk = OpenConversation(**engine, {});
  ASSERT_TRUE(talk.ok()) << talk.error().message;
  for (const char* text : {"Hello!", "Thanks!"}) {
    const auto turn = (*talk)->Turn(
        text, {.n_tokens_max = 60, .sampling = {.temperature = 0}}, nullptr,
        nullptr);
    ASSERT_TRUE(turn.ok());
    EXPECT_FALSE(turn->generate.text.empty());
    EXPECT_EQ(turn->generate.stop, StopReason::kEndOfText);
    EXPECT_EQ(turn->generate.text.find("<|im_end|>"), std::string::npos);
  }
}

TEST(ChatTemplate, RendersFromAFileWithKwargsAndAFixedClock) {
  TempDir dir;
  const std::string path = dir.path() + "/t.jinja";
  std::ofstream(path) << "{{ bos_token }}{{ strftime_now('%d %b %Y') }}"
                         "{% for m in messages %}<{{ m.content }}>{% endfor %}"
                         "{% if tools %}{{ tools | tojson }}{% endif %}"
                         "{% if add_generation_prompt %}!{% endif %}";
  const auto text = RenderChatTemplate(
      path, {.messages_json = R"([{"role":"user","content":"hi"}])",
             .tools_json = R"([{"b":1,"a":2}])",
             .kwargs_json = R"({"bos_token":"<s>"})",
             .add_generation_prompt = false,
             .now = "2026-01-02T03:04:05"});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, R"(<s>02 Jan 2026<hi>[{"b": 1, "a": 2}])");
  EXPECT_FALSE(
      RenderChatTemplate(path, {.messages_json = "[]", .now = "soon"}).ok());
  EXPECT_FALSE(RenderChatTemplate(path, {.messages_json = "7"}).ok());
}

}  // namespace
}  // namespace hearth
