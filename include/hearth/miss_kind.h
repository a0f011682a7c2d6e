// Why a prompt was not found whole, for whoever counts; SyncReport::miss_reason
// says it in words.
#pragma once

#include <cstdint>

namespace hearth {

enum class MissKind : std::uint8_t {
  kNotStored,     // nobody computed it here, or it was evicted
  kDefect,        // a stored file was damaged or could not be read
  kIncompatible,  // what is stored is of another model or format
  kSlower,        // loading was predicted to take longer than computing
  kNoMemory,      // no memory to load it
  kState          // the model carries a state that is not stored
};

}  // namespace hearth
