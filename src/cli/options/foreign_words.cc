#include "cli/options/foreign_words.h"

#include <algorithm>
#include <iterator>

namespace hearth::cli {
namespace {

struct Word {
  const char* word;
  const char* say;
};

constexpr const char* kNoGpu =
    "hearth computes on the CPU, so there are no layers to offload; leave it "
    "out";

constexpr Word kWords[] = {
    {"-ngl", kNoGpu},
    {"--gpu-layers", kNoGpu},
    {"--n-gpu-layers", kNoGpu},
    {"-np", "use --parallel"},
    {"-ctk", "use --kv-quantize-keys"},
    {"--cache-type-k", "use --kv-quantize-keys"},
    {"-ctv", "use --kv-quantize-values"},
    {"--cache-type-v", "use --kv-quantize-values"},
    {"-fa", "attention never stores its scores here; leave it out"},
    {"--flash-attn", "attention never stores its scores here; leave it out"},
    {"--no-mmap", "weights are always mapped; leave it out"},
    {"--mlock", "weights stay in the page cache; leave it out"},
    {"-cnv", "use hearth chat"},
    {"--conversation-mode", "use hearth chat"},
    {"-np", "use --parallel"},
    {"-sys", "use --system"},
    {"-hf", "hearth downloads nothing; give the path of a file"},
    {"--hf-repo", "hearth downloads nothing; give the path of a file"},
    {"--n-predict", "use -n or --tokens"},
    {"--predict", "use -n or --tokens"},
    {"--max-tokens", "use -n or --tokens"},
    {"--prompt-cache",
     "the prompt cache is on; --cache-prompt FILE keeps one "
     "prompt in one file"},
    {"--prompt-cache-all", "answers are kept, too; leave it out"},
    {"--samplers", "their order is fixed; leave it out"},
    {"--sampling-seq", "their order is fixed; leave it out"},
    {"--typical", "hearth has top-p and min-p; leave it out"},
    {"--top-nsigma", "hearth has top-p and min-p; leave it out"},
    {"--mirostat", "hearth has top-p and min-p; leave it out"},
    {"--dynatemp-range", "the temperature is one; leave it out"},
    {"-j", "use --json-schema FILE"},
    {"--lora-scaled", "use --lora FILE=scale"},
    {"--lora-init-without-apply",
     "adapters are chosen at the start; leave it out"},
    {"--mmproj", "hearth runs no vision models; leave it out"},
};

// Options whose value is free text and may look like an option.
constexpr const char* kTextOptions[] = {
    "-p",       "--prompt", "--text", "--system",
    "--kwargs", "--model",  "-m",     "--dry-sequence-breaker"};

}  // namespace

std::string ForeignWord(const std::vector<std::string>& words) {
  bool value = false;
  for (const std::string& word : words) {
    if (word == "--") return "";
    const bool is_value = value;
    value = std::any_of(std::begin(kTextOptions), std::end(kTextOptions),
                        [&word](const char* o) { return word == o; });
    if (is_value) continue;
    const std::string name = word.substr(0, word.find('='));
    for (const Word& known : kWords) {
      if (name == known.word) return name + ": " + known.say;
    }
  }
  return "";
}

}  // namespace hearth::cli
