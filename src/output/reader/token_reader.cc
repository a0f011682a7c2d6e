#include "output/reader/token_reader.h"

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "output/reader/walker.h"

namespace hearth::output {
namespace {

class TokenReader final : public AnswerReader {
 public:
  TokenReader(std::shared_ptr<const Program> program,
              std::shared_ptr<const ToolSet> tools,
              std::shared_ptr<const Tokenizer> tokenizer, bool in_thought)
      : program_(std::move(program)),
        tokenizer_(std::move(tokenizer)),
        decoder_(*tokenizer_, /*skip_special=*/true, /*at_start=*/false),
        walker_(program_, std::move(tools), in_thought) {}

  std::vector<AnswerEvent> Feed(const Token& token) override {
    if (token.id >= 0) Queue(token.id);
    std::string_view text = token.text;
    while (!queue_.empty() && Release(text)) {
    }
    if (!text.empty()) walker_.Push(text);
    return walker_.Take();
  }

  std::vector<AnswerEvent> Finish() override {
    walker_.Finish();
    return walker_.Take();
  }

 private:
  // What a token is to the walker, and how many bytes of text the engine
  // gives for it.
  struct Unit {
    std::string bytes;
    std::size_t n_text;
  };

  void Queue(std::int32_t id) {
    std::string text = decoder_.Push(id);
    const auto marker =
        std::find_if(program_->markers.begin(), program_->markers.end(),
                     [&](const TokenMarker& m) { return m.id == id; });
    if (marker == program_->markers.end()) {
      if (!text.empty()) queue_.push_back({text, text.size()});
      return;
    }
    // Bytes of a broken character may have come out before the marker's own.
    std::size_t n_own = 0;
    if (text.ends_with(marker->spelling)) n_own = marker->spelling.size();
    text.resize(text.size() - n_own);
    if (!text.empty()) queue_.push_back({text, text.size()});
    const auto i = static_cast<std::size_t>(marker - program_->markers.begin());
    queue_.push_back({Program::CodeOf(i), n_own});
  }

  // Gives the first unit to the walker as far as `text` has come; false: no
  // further.
  bool Release(std::string_view& text) {
    Unit& unit = queue_.front();
    const bool is_code = unit.bytes.front() == kTokenByte;
    if (is_code) {
      // Its text may come in pieces.
      const std::size_t n = std::min(unit.n_text, text.size());
      text.remove_prefix(n);
      unit.n_text -= n;
      if (unit.n_text > 0) return false;
      walker_.Push(unit.bytes);
      queue_.pop_front();
      return true;
    }
    const std::size_t n = std::min(unit.bytes.size(), text.size());
    walker_.Push(std::string_view(unit.bytes).substr(0, n));
    text.remove_prefix(n);
    unit.bytes.erase(0, n);
    if (!unit.bytes.empty()) return false;
    queue_.pop_front();
    return true;
  }

  std::shared_ptr<const Program> program_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  StreamDecoder decoder_;
  Walker walker_;
  std::deque<Unit> queue_;
};

}  // namespace

std::unique_ptr<AnswerReader> MakeTokenReader(
    std::shared_ptr<const Program> program,
    std::shared_ptr<const ToolSet> tools,
    std::shared_ptr<const Tokenizer> tokenizer, bool in_thought) {
  return std::make_unique<TokenReader>(std::move(program), std::move(tools),
                                       std::move(tokenizer), in_thought);
}

}  // namespace hearth::output
