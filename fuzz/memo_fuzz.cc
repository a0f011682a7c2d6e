// What launches leave in models/ for the next one: speeds and content digests.
// Whatever the bytes, there is a memo with sane values or none.
//
// Input  one byte that says what to make right first, then the file.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "store/memo/model_memo.h"
#include "store/memo/speed_memo.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace hearth;
  if (size == 0) return 0;
  const ByteSpan file = std::as_bytes(std::span(data + 1, size - 1));

  std::string text(AsText(file));
  if ((data[0] & 1) != 0) text = SealedSpeeds(text);
  const KvSpeeds speeds = ParseSpeeds(text, "fuzz");
  for (const double speed :
       {speeds.load_bytes_per_s, speeds.prefill_tokens_per_s}) {
    if (!std::isfinite(speed) || speed < 0) std::abort();
  }

  const std::vector<FileStamp> stamps(data[0] >> 6);
  const auto digest = ParseModelMemo(file, stamps);
  // Only one file says so of these stamps.
  if (digest.has_value() && EncodeModelMemo(stamps, *digest) !=
                                std::vector(file.begin(), file.end())) {
    std::abort();
  }
  return 0;
}
