// Any bytes as a family's description: it is refused with a line, or makes a
// program that any answer walks to its end.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/check.h"
#include "output/description/description.h"
#include "output/reader/walker.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace hearth::output;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto program = ParseDescription(text);
  if (!program.ok()) {
    HEARTH_CHECK(!program.error().message.empty());
    return 0;
  }
  Walker walker(std::make_shared<const Program>(std::move(*program)),
                std::make_shared<const ToolSet>(), /*in_thought=*/false);
  walker.Push(text);
  walker.Finish();
  (void)walker.Take();
  return 0;
}
