#include "formats/gguf/gguf_split.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <utility>

#include "formats/describe.h"

namespace hearth {
namespace {

constexpr std::string_view kEnding = ".gguf";
constexpr std::int64_t kPartsMax = 99'999;  // five digits in a name

// Five digits, or nothing.
std::optional<int> FiveDigits(std::string_view text) {
  int value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.size() != 5 || error != std::errc() ||
      end != text.data() + text.size() || text[0] == '-') {
    return std::nullopt;
  }
  return value;
}

// Whether another GGUF file begins right behind the last tensor's bytes.
bool AnotherFollows(const GgufFile& gguf, ByteSpan bytes) {
  const std::byte* end = nullptr;
  for (const GgufTensor& tensor : gguf.tensors()) {
    if (!tensor.bytes.empty()) {
      end = std::max(end, tensor.bytes.data() + tensor.bytes.size());
    }
  }
  if (end == nullptr) return false;
  const auto behind = static_cast<std::size_t>(end - bytes.data());
  // Writers fill up to the alignment, which is 32 nearly everywhere.
  const std::string_view rest = AsText(bytes.subspan(
      behind, std::min<std::size_t>(bytes.size() - behind, 4096 + 4)));
  const std::size_t at = rest.find("GGUF");
  return at != std::string_view::npos &&
         std::all_of(rest.begin(),
                     rest.begin() + static_cast<std::ptrdiff_t>(at),
                     [](char c) { return c == 0; });
}

Result<void> CheckPart(const GgufFile& gguf, int index, std::int64_t count) {
  HEARTH_ASSIGN(const std::int64_t no, gguf.Int("split.no", -1));
  HEARTH_ASSIGN(const std::int64_t parts, gguf.Int("split.count", -1));
  if (no == index && parts == count) return {};
  return {Code::kCorrupt,
          gguf.label() + ": is not part " + std::to_string(index + 1) + " of " +
              std::to_string(count) +
              " of this model, as its name says; download the parts again"};
}

}  // namespace

std::string SplitPart::PathOf(int part) const {
  char numbers[40];
  std::snprintf(numbers, sizeof numbers, "-%05d-of-%05d", part + 1, count);
  return stem + numbers + std::string(kEnding);
}

std::optional<SplitPart> SplitPartOf(std::string_view path) {
  constexpr std::string_view kOf = "-of-";
  constexpr std::size_t kNumbers = 1 + 5 + kOf.size() + 5;
  if (!path.ends_with(kEnding)) return std::nullopt;
  path.remove_suffix(kEnding.size());
  if (path.size() < kNumbers) return std::nullopt;
  const std::string_view numbers = path.substr(path.size() - kNumbers);
  const auto index = FiveDigits(numbers.substr(1, 5));
  const auto count = FiveDigits(numbers.substr(6 + kOf.size()));
  if (numbers[0] != '-' || numbers.substr(6, kOf.size()) != kOf ||
      !index.has_value() || !count.has_value() || *index < 1 ||
      *index > *count) {
    return std::nullopt;
  }
  return SplitPart{std::string(path.substr(0, path.size() - kNumbers)),
                   *index - 1, *count};
}

Result<std::vector<GgufPartFile>> OpenSplitParts(const GgufFile& gguf,
                                                 ByteSpan bytes,
                                                 const std::string& path) {
  HEARTH_ASSIGN(const std::int64_t count, gguf.Int("split.count", 1));
  if (count <= 1) return std::vector<GgufPartFile>();
  if (AnotherFollows(gguf, bytes)) {
    return {Code::kUnsupported,
            path + ": these are " + std::to_string(count) +
                " parts of a split model, joined byte by byte, which makes no "
                "model; give the first part with the others beside it, or "
                "join them with llama-gguf-split --merge"};
  }
  const auto part = SplitPartOf(path);
  if (count > kPartsMax || !part.has_value() || part->count != count) {
    return {Code::kUnsupported,
            path + ": this is one of " + std::to_string(count) +
                " parts of a split model, and its name does not lead to the "
                "others; name them NAME-00001-of-00002.gguf and so on, or "
                "join them with llama-gguf-split --merge"};
  }
  std::vector<GgufPartFile> parts;
  std::size_t n_tensors = 0;
  for (int i = 0; i < part->count; ++i) {
    const std::string name = part->PathOf(i);
    auto file = MappedFile::Open(name);
    if (!file.ok() && file.error().code == Code::kNotFound) {
      return {Code::kNotFound,
              name + ": this part of a split model of " +
                  std::to_string(count) +
                  " is missing; download it into the folder of the others"};
    }
    if (!file.ok()) return file.error();
    HEARTH_ASSIGN(GgufFile parsed, GgufFile::Parse(file->bytes(), name));
    HEARTH_TRY(CheckPart(parsed, i, count));
    n_tensors += parsed.tensors().size();
    parts.push_back({std::move(*file), std::move(parsed)});
  }
  HEARTH_ASSIGN(const std::int64_t wanted,
                parts.front().gguf.Int("split.tensors.count",
                                       static_cast<std::int64_t>(n_tensors)));
  if (wanted != static_cast<std::int64_t>(n_tensors)) {
    return {Code::kCorrupt,
            path + ": the parts of this split model have " +
                std::to_string(n_tensors) + " tensors, but should have " +
                std::to_string(wanted) + "; download them again"};
  }
  return parts;
}

}  // namespace hearth
