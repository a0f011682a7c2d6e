#include "text/gguf/gguf_pre.h"

#include <array>

#include "text/split/split_patterns.h"

namespace hearth {
namespace {

using Pattern = std::string_view;

constexpr Pattern kThreeDigits = "[0-9][0-9][0-9]";
constexpr Pattern kCjkV3 = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+";
constexpr Pattern kCjkOld = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+";
constexpr Pattern kDeepSeekV3Words =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|"
    "[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|"
    "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+";
// Letters of the alphabets with case, as the model's own file lists them.
constexpr Pattern kDeepSeekLlmLetters =
    "\\s?[A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF"
    "\u01C4-\u0293\u0295-\u02AF\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F"
    "\u0386\u0388-\u038A\u038C\u038E-\u03A1\u03A3-\u03F5\u03F7-\u0481"
    "\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD"
    "\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A"
    "\u1E00-\u1F15\u1F18-\u1F1D\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59"
    "\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4"
    "\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC\u1FF2-\u1FF4"
    "\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126"
    "\u2128\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E"
    "\u2183\u2184\u2C00-\u2C7B\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3"
    "\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787\uA78B-\uA78E"
    "\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A"
    "\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB"
    "\U00010C80-\U00010CB2\U00010CC0-\U00010CF2\U000118A0-\U000118DF"
    "\U0001E900-\U0001E943]+";
constexpr Pattern kDeepSeekLlmMarks =
    "\\s?[!-/:-~\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+";
constexpr Pattern kBloomWords =
    " ?[^(\\s|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)]+";

constexpr std::array kGpt2 = {kGpt2Text};
constexpr std::array kDefault = {Pattern(R"([\p{P}\$\+<=>\^~\|]+)"), kGpt2Text,
                                 Pattern("\\p{N}+"), kThreeDigits};
constexpr std::array kFalcon = {Pattern(R"([\p{P}\$\+<=>\^~\|`]+)"), kGpt2Text,
                                kThreeDigits};
constexpr std::array kStarCoder = {Pattern("\\p{N}"), kGpt2Text};
constexpr std::array kLlama3 = {kCl100kText};
constexpr std::array kQwen2 = {kCl100kDigitText};
constexpr std::array kO200k = {kO200kText};
constexpr std::array kTekken = {kTekkenText};
constexpr std::array kQwen35 = {kQwen35Text};
// As cl100k, but line ends are never behind other characters.
constexpr std::array kSeedCoder = {Pattern(
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)")};
// As o200k, but Chinese characters stand alone. The model's own pattern
// intersects classes with what is not Han; these exclude all other categories.
constexpr std::array kKimiK2 = {Pattern(
    R"([\p{sc:Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?[^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}]*)"
    R"([^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[^\p{sc:Han}\p{Ll}\p{N}\p{P}\p{S}\p{Z}\p{C}]+)"
    R"([^\p{sc:Han}\p{Lu}\p{Lt}\p{N}\p{P}\p{S}\p{Z}\p{C}]*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)")};
constexpr std::array kDeepSeekLlm = {Pattern("[\\r\\n]"),
                                     kDeepSeekLlmLetters,
                                     kDeepSeekLlmMarks,
                                     Pattern("\\s+$"),
                                     kCjkOld,
                                     Pattern("\\p{N}+")};
constexpr std::array kDeepSeekCoder = {
    Pattern("[\\r\\n]"), Pattern("\\s?\\p{L}+"), Pattern("\\s?\\p{P}+"),
    kCjkOld, Pattern("\\p{N}")};
constexpr std::array kDeepSeekV3 = {Pattern("\\p{N}{1,3}"), kCjkV3,
                                    kDeepSeekV3Words};
constexpr std::array kBloom = {kBloomWords};
constexpr std::array kViking = {kBloomWords, Pattern("\\p{N}")};

struct Entry {
  std::string_view name;
  std::span<const Pattern> patterns;
  bool ignore_merges = false;
  bool add_bos = false;
};

constexpr Entry kTable[] = {
    {"", kDefault},
    {"default", kDefault},
    {"llama3", kLlama3, true, true},
    {"llama-v3", kLlama3, true, true},
    {"llama-bpe", kLlama3, true, true},
    {"falcon3", kLlama3, true, true},
    {"falcon-h1", kLlama3, true, true},
    {"pixtral", kLlama3, true, true},
    {"midm-2.0", kLlama3, true, true},
    {"lfm2", kLlama3, true, true},
    {"dbrx", kLlama3},
    {"smaug-bpe", kLlama3},
    {"chatglm-bpe", kLlama3},
    {"glm4", kLlama3},
    {"grok-2", kLlama3},
    {"qwen2", kQwen2},
    {"deepseek-r1-qwen", kQwen2},
    {"megrez", kQwen2},
    {"kormo", kQwen2},
    {"stablelm2", kQwen2},
    {"hunyuan", kQwen2},
    {"solar-open", kQwen2},
    {"qwen35", kQwen35},
    {"seed-coder", kSeedCoder},
    {"gpt-2", kGpt2},
    {"phi-2", kGpt2},
    {"mpt", kGpt2},
    {"olmo", kGpt2},
    {"jais", kGpt2},
    {"trillion", kGpt2},
    {"gigachat", kGpt2},
    {"roberta-bpe", kGpt2},
    {"jina-es", kGpt2},
    {"jina-de", kGpt2},
    {"jina-v1-en", kGpt2},
    {"jina-v2-es", kGpt2},
    {"jina-v2-de", kGpt2},
    {"jina-v2-code", kGpt2},
    {"exaone4", kGpt2},
    {"a.x-4.0", kGpt2},
    {"mellum", kGpt2},
    {"falcon", kFalcon},
    {"starcoder", kStarCoder},
    {"refact", kStarCoder},
    {"command-r", kStarCoder},
    {"smollm", kStarCoder},
    {"codeshell", kStarCoder},
    {"exaone", kStarCoder},
    {"minerva-7b", kStarCoder},
    {"granite-docling", kStarCoder},
    {"deepseek-llm", kDeepSeekLlm},
    {"deepseek-coder", kDeepSeekCoder},
    {"deepseek-v3", kDeepSeekV3},
    {"hunyuan-dense", kDeepSeekV3},
    {"joyai-llm", kDeepSeekV3},
    {"gpt-4o", kO200k},
    {"o200k", kO200k},
    {"llama4", kO200k},
    {"minimax-m2", kO200k},
    {"kimi-k2", kKimiK2},
    {"tekken", kTekken, true, true},
    {"poro-chat", kBloom},
    {"bloom", kBloom},
    {"gpt3-finnish", kBloom},
    {"viking", kViking},
};

}  // namespace

Result<GgufPre> FindGgufPre(const std::string& name, const std::string& what) {
  for (const Entry& entry : kTable) {
    if (entry.name == name) {
      return GgufPre{entry.patterns, entry.ignore_merges, entry.add_bos};
    }
  }
  return {Code::kUnsupported,
          what + ": tokenizer.ggml.pre \"" + name +
              "\" names no pre-tokenizer that hearth knows"};
}

}  // namespace hearth
