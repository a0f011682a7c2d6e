#include "serve/wire/store/image.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

namespace hearth::serve {
namespace {

constexpr std::string_view kMagic("HKVR\r\n\x1a\n", 8);
constexpr std::uint32_t kVersion = 1;
constexpr std::uint32_t kResponse = 1;
constexpr std::uint32_t kPrompt = 2;
constexpr std::size_t kChecked = 40;  // what the checksum is of begins here

std::string Make(std::uint32_t kind, std::int64_t created_s,
                 std::initializer_list<std::string_view> parts) {
  std::vector<std::byte> out;
  for (const char c : kMagic) out.push_back(static_cast<std::byte>(c));
  AppendLe(out, kVersion);
  AppendLe(out, kind);
  AppendLe(out, created_s);
  AppendLe(out, static_cast<std::uint64_t>(parts.size()));
  AppendLe(out, std::uint64_t{0});
  for (const std::string_view part : parts) {
    AppendLe(out, static_cast<std::uint64_t>(part.size()));
    const ByteSpan bytes = AsBytes(part);
    out.insert(out.end(), bytes.begin(), bytes.end());
  }
  StoreLe(out.data() + kChecked - 8,
          Checksum64(ByteSpan(out).subspan(kChecked)));
  return std::string(AsText(out));
}

std::string_view DigestText(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()),
          digest.bytes.size()};
}

std::string Text(ByteSpan bytes) { return std::string(AsText(bytes)); }

StoredResponse ResponseOf(std::int64_t created_s,
                          const std::vector<ByteSpan>& parts) {
  return {.id = Text(parts[0]),
          .space = Text(parts[1]),
          .created_s = created_s,
          .previous_id = Text(parts[2]),
          .input_json = Text(parts[3]),
          .response_json = Text(parts[4])};
}

// REQUIRES: the lengths of parts 3, 4 and 5 are those of digests and of ids.
StoredPrompt PromptOf(std::int64_t created_s,
                      const std::vector<ByteSpan>& parts) {
  StoredPrompt prompt = {.id = Text(parts[0]),
                         .space = Text(parts[1]),
                         .created_s = created_s,
                         .model = Text(parts[2])};
  std::memcpy(prompt.system.bytes.data(), parts[3].data(), 32);
  std::memcpy(prompt.tools.bytes.data(), parts[4].data(), 32);
  prompt.ids.resize(parts[5].size() / 4);
  if (!prompt.ids.empty()) {
    std::memcpy(prompt.ids.data(), parts[5].data(), parts[5].size());
  }
  return prompt;
}

}  // namespace

std::string ImageOf(const StoredResponse& response) {
  return Make(kResponse, response.created_s,
              {response.id, response.space, response.previous_id,
               response.input_json, response.response_json});
}

std::string ImageOf(const StoredPrompt& prompt) {
  const std::string_view ids(reinterpret_cast<const char*>(prompt.ids.data()),
                             prompt.ids.size() * 4);
  return Make(kPrompt, prompt.created_s,
              {prompt.id, prompt.space, prompt.model, DigestText(prompt.system),
               DigestText(prompt.tools), ids});
}

Result<std::variant<StoredResponse, StoredPrompt>> ReadImage(
    ByteSpan bytes, const std::string& what) {
  const Error corrupt = {Code::kCorrupt, what + ": not a stored response"};
  ByteReader reader(bytes);
  const ByteSpan magic = reader.Take(kMagic.size());
  const auto version = reader.Read<std::uint32_t>();
  const auto kind = reader.Read<std::uint32_t>();
  const auto created_s = reader.Read<std::int64_t>();
  const auto n_parts = reader.Read<std::uint64_t>();
  const auto checksum = reader.Read<std::uint64_t>();
  if (!reader.ok() || AsText(magic) != kMagic) return corrupt;
  if (version != kVersion) {
    return {Code::kUnsupported, what + ": version " + std::to_string(version) +
                                    " of a stored response"};
  }
  if (checksum != Checksum64(bytes.subspan(kChecked))) return corrupt;
  const std::uint64_t wanted = kind == kResponse ? 5 : 6;
  if ((kind != kResponse && kind != kPrompt) || n_parts != wanted) {
    return corrupt;
  }
  std::vector<ByteSpan> parts;
  for (std::uint64_t i = 0; i < n_parts; ++i) {
    parts.push_back(reader.Take(reader.Read<std::uint64_t>()));
  }
  if (!reader.ok() || reader.remaining() > 0) return corrupt;
  if (kind == kResponse) return {ResponseOf(created_s, parts)};
  if (parts[3].size() != 32 || parts[4].size() != 32 ||
      parts[5].size() % 4 != 0) {
    return corrupt;
  }
  return {PromptOf(created_s, parts)};
}

}  // namespace hearth::serve
