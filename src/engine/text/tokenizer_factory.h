// Finds and makes the tokenizer of a loaded model.
#pragma once

#include <memory>
#include <string>

#include "hearth/result.h"
#include "hearth/tokenizer.h"
#include "model/weights.h"
#include "text/tokenizer.h"

namespace hearth {

// The tokenizer, with the end tokens of the model's configuration among its
// own: its IsEnd is the one place that knows when an answer is over.
// Errors name the file that is missing or wrong; a tokenizer that fails to load
// is never replaced by another.
Result<std::unique_ptr<Tokenizer>> MakeTokenizer(const LoadedModel& model);

// As its own files have it, without those of the model's configuration.
Result<std::unique_ptr<Tokenizer>> ReadTokenizer(const LoadedModel& model);

// What a user should know of the tokenizer before he trusts its ids: that its
// file does not say how to split text. Mostly empty.
std::string TokenizerWarning(const LoadedModel& model);

// From a tokenizer.json; a tokenizer_config.json beside it is read too.
Result<std::unique_ptr<Tokenizer>> MakeTokenizerFromJsonFile(
    const std::string& path);

// The public face of a tokenizer.
std::unique_ptr<TextCodec> MakeTextCodec(
    std::shared_ptr<const Tokenizer> tokenizer);

}  // namespace hearth
