#include "store/memo/model_memo.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "store/directory/layout.h"

namespace hearth {
namespace {

// memo := magic checksum version n_stamps digest stamp*
constexpr std::array<char, 8> kMemoMagic = {'H',  'K',  'V',    'M',
                                            '\r', '\n', '\x1a', '\n'};
constexpr std::size_t kMemoCheckedAt = 16;
constexpr std::uint32_t kMemoVersion = 1;
constexpr std::size_t kMemoBytesMax = std::size_t{1} << 20;
constexpr std::int64_t kSettledNs = std::int64_t{2} * 1'000'000'000;

}  // namespace

std::vector<std::byte> EncodeModelMemo(std::span<const FileStamp> stamps,
                                       const Digest& digest) {
  std::vector<std::byte> out;
  for (const char c : kMemoMagic) out.push_back(static_cast<std::byte>(c));
  AppendLe(out, std::uint64_t{0});
  AppendLe(out, kMemoVersion);
  AppendLe(out, static_cast<std::uint32_t>(stamps.size()));
  AppendLe(out, digest.bytes);
  for (const FileStamp& stamp : stamps) {
    AppendLe(out, stamp.device);
    AppendLe(out, stamp.inode);
    AppendLe(out, stamp.size);
    AppendLe(out, stamp.mtime_ns);
    AppendLe(out, stamp.ctime_ns);
  }
  StoreLe(out.data() + kMemoMagic.size(),
          Checksum64(ByteSpan(out).subspan(kMemoCheckedAt)));
  return out;
}

namespace {

std::string NameOf(std::span<const FileStamp> stamps) {
  const auto encoded = EncodeModelMemo(stamps, Digest{});
  return ToHex(Sha256().Field(ByteSpan(encoded)).Finish(), 16) +
         std::string(kMemoSuffix);
}

}  // namespace

std::optional<Digest> ParseModelMemo(ByteSpan file,
                                     std::span<const FileStamp> stamps) {
  constexpr std::size_t kDigestAt = kMemoCheckedAt + 8;
  Digest digest;
  if (file.size() < kDigestAt + digest.bytes.size()) return std::nullopt;
  std::memcpy(digest.bytes.data(), file.data() + kDigestAt,
              digest.bytes.size());
  // Right exactly when it is what we would write for these stamps.
  const std::vector<std::byte> right = EncodeModelMemo(stamps, digest);
  if (!std::equal(right.begin(), right.end(), file.begin(), file.end())) {
    return std::nullopt;
  }
  return digest;
}

std::optional<Digest> ModelMemo::Find(std::span<const FileStamp> stamps) const {
  const auto file = files_.Find(NameOf(stamps), kMemoBytesMax);
  if (!file.has_value()) return std::nullopt;
  return ParseModelMemo(file->bytes, stamps);
}

Result<void> ModelMemo::Save(std::span<const FileStamp> stamps,
                             const Digest& digest) const {
  const std::int64_t now_ns = NowNs();
  for (const FileStamp& stamp : stamps) {
    if (std::max(stamp.mtime_ns, stamp.ctime_ns) > now_ns - kSettledNs) {
      return {};
    }
  }
  const std::vector<std::byte> encoded = EncodeModelMemo(stamps, digest);
  if (encoded.size() > kMemoBytesMax) {
    return {Code::kInvalidArgument, "too many model files to remember"};
  }
  return files_.Write(NameOf(stamps), encoded, Durability::kDurable,
                      Room::kEvict);
}

}  // namespace hearth
