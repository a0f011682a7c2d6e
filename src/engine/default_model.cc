#include "engine/default_model.h"

extern "C" {
extern const std::byte hearth_default_model_begin[];
extern const std::byte hearth_default_model_end[];
}

namespace hearth {

ByteSpan DefaultModelBytes() {
  return {hearth_default_model_begin, hearth_default_model_end};
}

}  // namespace hearth
