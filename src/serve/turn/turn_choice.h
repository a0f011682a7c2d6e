// One answer of a request as its tokens come: read, and given to the writer.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "hearth/dialogue.h"
#include "serve/wire/answer.h"

namespace hearth::serve {

class TurnChoice {
 public:
  // A null reader: all of it is text.
  TurnChoice(int index, std::unique_ptr<AnswerReader> reader, bool logprobs,
             const TextCodec& codec)
      : index_(index),
        reader_(std::move(reader)),
        logprobs_(logprobs),
        codec_(codec) {}

  // What is to be sent for a token, and for the end.
  std::string Feed(const Token& token, AnswerWriter& writer);
  std::string Finish(const GenerateReport& report, AnswerWriter& writer);

  int n_tokens() const { return n_tokens_; }
  int n_reasoning() const { return n_reasoning_; }
  const std::string& fault() const { return fault_; }

 private:
  std::string Write(const std::vector<AnswerEvent>& events,
                    AnswerWriter& writer);
  LogprobEntry EntryOf(const Token& token) const;

  int index_;
  std::unique_ptr<AnswerReader> reader_;
  bool logprobs_;
  const TextCodec& codec_;
  std::vector<LogprobEntry> entries_;  // of tokens whose text is held back
  int n_tokens_ = 0, n_reasoning_ = 0;
  bool called_ = false;
  std::string fault_;
};

}  // namespace hearth::serve
