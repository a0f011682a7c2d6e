#include "capi/failure.h"

#include <exception>
#include <new>

namespace hearth::capi {
namespace {

std::string& LastError() {
  thread_local std::string text;
  return text;
}

}  // namespace

hearth_code CodeOf(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return HEARTH_INVALID_ARGUMENT;
    case Code::kNotFound:
      return HEARTH_NOT_FOUND;
    case Code::kCorrupt:
      return HEARTH_CORRUPT;
    case Code::kIncompatible:
      return HEARTH_INCOMPATIBLE;
    case Code::kUnsupported:
      return HEARTH_UNSUPPORTED;
    case Code::kResourceFull:
      return HEARTH_RESOURCE_FULL;
    case Code::kIo:
      return HEARTH_IO;
    case Code::kCancelled:
      return HEARTH_CANCELLED;
  }
  return HEARTH_INTERNAL;
}

hearth_code Fail(hearth_code code, std::string message) {
  LastError() = std::move(message);
  return code;
}

hearth_code Fail(const Error& error) {
  return Fail(CodeOf(error.code), error.message);
}

hearth_code FailByException() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    LastError().clear();  // a text would need memory
    return HEARTH_RESOURCE_FULL;
  } catch (const std::exception& e) {
    return Fail(HEARTH_INTERNAL, e.what());
  } catch (...) {
    return Fail(HEARTH_INTERNAL, "an exception without a text");
  }
}

}  // namespace hearth::capi

extern "C" {

const char* hearth_last_error(void) {
  return hearth::capi::LastError().c_str();
}

const char* hearth_code_name(hearth_code code) {
  switch (code) {
    case HEARTH_OK:
      return "ok";
    case HEARTH_INVALID_ARGUMENT:
      return "invalid argument";
    case HEARTH_NOT_FOUND:
      return "not found";
    case HEARTH_CORRUPT:
      return "corrupt";
    case HEARTH_INCOMPATIBLE:
      return "incompatible";
    case HEARTH_UNSUPPORTED:
      return "unsupported";
    case HEARTH_RESOURCE_FULL:
      return "resource full";
    case HEARTH_IO:
      return "input/output";
    case HEARTH_CANCELLED:
      return "cancelled";
    case HEARTH_BAD_HANDLE:
      return "bad handle";
    case HEARTH_BUFFER_TOO_SMALL:
      return "buffer too small";
    case HEARTH_IN_USE:
      return "in use";
    case HEARTH_INTERNAL:
      return "internal";
    default:
      return "unknown";
  }
}

}  // extern "C"
