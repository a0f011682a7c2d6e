// Templates whose messages begin with words instead of control tokens: a model
// that carries states is told where they end, by chats and by the dialogues
// that the server has.
#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "hearth/chat.h"
#include "hearth/dialogue.h"
#include "hearth/engine.h"
#include "testing/family_fixture.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

class MessageMarks : public ::testing::Test {
 protected:
  void SetUp() override {
    EngineOptions options{.model_path = DirectoryOf("lfm2"), .n_threads = 1};
    options.prompt_cache_dir = dir_.path() + "/s";
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    engine_ = std::move(*engine);
    std::ofstream(words_)
        << "{% for m in messages %}{{ m.role }}: {{ m.content }}\n\n"
           "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";
    std::ofstream(controls_)
        << "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
           "<|im_end|>\n{% endfor %}"
           "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
  }
  RenderedPrompt Render(const std::string& chat_template,
                        const std::string& user) const {
    const auto dialogue = Dialogue::Open(*engine_, chat_template);
    EXPECT_TRUE(dialogue.ok()) << dialogue.error().message;
    auto prompt = (*dialogue)->Render(
        {.messages_json = R"([{"role": "system", "content": "Be brief."},
          {"role": "user", "content": "first"},
          {"role": "assistant", "content": "second"},
          {"role": "user", "content": ")" +
                          user + "\"}]"});
    EXPECT_TRUE(prompt.ok()) << prompt.error().message;
    return prompt.ok() ? *std::move(prompt) : RenderedPrompt{};
  }
  std::string UpTo(const RenderedPrompt& prompt, int n) const {
    return engine_->codec()
        .Decode(std::span(prompt.ids).first(static_cast<std::size_t>(n)))
        .value();
  }

  TempDir dir_;
  std::unique_ptr<Engine> engine_;
  const std::string words_ = dir_.path() + "/words.jinja";
  const std::string controls_ = dir_.path() + "/controls.jinja";
};

TEST_F(MessageMarks, AreGivenWhereNoControlTokenShowsThem) {
  EXPECT_TRUE(Render(controls_, "third").marks.empty());
  const RenderedPrompt prompt = Render(words_, "third");
  ASSERT_EQ(prompt.marks.size(), 4u);
  const char* ends[] = {"Be brief.", "first", "second", "third"};
  for (std::size_t i = 0; i < 4; ++i) {
    std::string text = UpTo(prompt, prompt.marks[i]);
    // A token may hold blanks of the next message, too, and is then none of
    // this one's.
    text.resize(text.find_last_not_of('\n') + 1);
    EXPECT_TRUE(text.ends_with(ends[i])) << text;
  }
}

TEST_F(MessageMarks, AnotherQuestionGoesOnBehindWhatIsTheSame) {
  const RenderedPrompt one = Render(words_, "third");
  const RenderedPrompt other = Render(words_, "what else?");
  ASSERT_EQ(one.marks.size(), 4u);
  const auto session = *engine_->NewSession();
  ASSERT_TRUE(session->Sync(one.ids, nullptr, one.marks).ok());
  const auto second = *engine_->NewSession();
  const auto report = second->Sync(other.ids, nullptr, other.marks);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->reused_tokens, one.marks[2]);
}

TEST_F(MessageMarks, AChatGivesThemToo) {
  const auto open = [&] {
    ConversationOptions options;
    options.system = "Be brief, " + std::string(60, 'b');
    options.template_path = words_;
    return OpenConversation(*engine_, options).value();
  };
  const GenerateOptions few{
      .n_tokens_max = 4, .ignore_eos = true, .sampling = {.temperature = 0}};
  const auto first = open();
  const auto one = first->Turn("hello", few, nullptr, nullptr);
  ASSERT_TRUE(one.ok()) << one.error().message;
  const auto second = open();
  const auto other = second->Turn("who is it?", few, nullptr, nullptr);
  ASSERT_TRUE(other.ok()) << other.error().message;
  // The system message, but for a token over its end.
  EXPECT_GE(other->sync.reused_tokens, 60);
}

}  // namespace
}  // namespace hearth
