// A saved conversation from outside: reading must end in a conversation or an
// error, and what was read must be written and read again as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "engine/text/conversation_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto saved = hearth::ParseConversation(input, "fuzz");
  if (!saved.ok()) return 0;
  const std::string text = hearth::ConversationText(*saved);
  const auto again = hearth::ParseConversation(text, "fuzz");
  if (!again.ok() || hearth::ConversationText(*again) != text) std::abort();
  return 0;
}
