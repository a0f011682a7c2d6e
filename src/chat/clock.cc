// strftime_now, and what time it is.
#include <ctime>

#include "chat/jinja/run/builtins.h"
#include "chat/template.h"

namespace hearth {

std::chrono::local_seconds LocalNow() {
  const std::time_t now = std::time(nullptr);
  std::tm wall = {};
  localtime_r(&now, &wall);
  return std::chrono::local_seconds(std::chrono::seconds(timegm(&wall)));
}

namespace jinja {
namespace {

constexpr std::size_t kFormatBytesMax = 4096;
constexpr std::size_t kTextBytesMax = 65536;

// What a datetime without time zone adds to C: %f is microseconds, and %z and
// %Z are empty. Widths are refused, since C would pad to any width.
Result<std::string> PlainFormat(const std::string& format) {
  std::string out;
  for (std::size_t i = 0; i < format.size(); ++i) {
    if (format[i] == '\0')
      return Error{Code::kInvalidArgument, "NUL in a time format"};
    if (format[i] != '%' || i + 1 >= format.size()) {
      out += format[i];
      continue;
    }
    const char c = format[++i];
    if (c >= '0' && c <= '9') {
      return Error{Code::kUnsupported, "a width in a time format"};
    }
    if (c == 'f') {
      out += "000000";
    } else if (c != 'z' && c != 'Z') {
      out += '%';
      out += c;
      // `%-d`: the letter may not start a width either.
      const bool is_flag = c == '-' || c == '_' || c == '^' || c == '#';
      if (is_flag && i + 1 < format.size() && format[i + 1] >= '0' &&
          format[i + 1] <= '9') {
        return Error{Code::kUnsupported, "a width in a time format"};
      }
    }
  }
  return out;
}

}  // namespace

Result<std::string> FormatTime(const std::string& format,
                               std::int64_t local_seconds) {
  if (format.size() > kFormatBytesMax) {
    return {Code::kResourceFull, "a time format is too long"};
  }
  HEARTH_ASSIGN(const std::string plain, PlainFormat(format));
  const auto time = static_cast<std::time_t>(local_seconds);
  std::tm wall = {};
  if (gmtime_r(&time, &wall) == nullptr) {
    return {Code::kInvalidArgument, "the time is out of range"};
  }
  // One more character, so that an empty result is not taken for a failure.
  std::string text(kTextBytesMax, '\0');
  const std::size_t n =
      std::strftime(text.data(), text.size(), (plain + ".").c_str(), &wall);
  if (n == 0) return {Code::kResourceFull, "a formatted time is too long"};
  text.resize(n - 1);
  return text;
}

}  // namespace jinja
}  // namespace hearth
