#include "hearth/result.h"

namespace hearth {

const char* CodeName(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kNotFound:
      return "not found";
    case Code::kCorrupt:
      return "corrupt";
    case Code::kIncompatible:
      return "incompatible";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kResourceFull:
      return "limit reached";
    case Code::kIo:
      return "i/o error";
    case Code::kCancelled:
      return "cancelled";
  }
  return "unknown";
}

}  // namespace hearth
