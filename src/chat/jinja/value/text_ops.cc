#include "chat/jinja/value/text_ops.h"

#include "chat/jinja/run/operators.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {

Result<std::string> ReplaceText(Vm& vm, const std::string& text,
                                const std::string& from, const std::string& to,
                                std::int64_t count) {
  const std::size_t limit =
      count < 0 ? SIZE_MAX : static_cast<std::size_t>(count);
  std::string out;
  std::size_t pos = 0;
  const std::size_t bytes_max = vm.budget().limits().string_bytes_max;
  for (std::size_t done = 0; done < limit; ++done) {
    if (out.size() > bytes_max) {
      HEARTH_TRY(vm.budget().BuildString(out.size()));
    }
    if (from.empty()) {
      // Between all characters, and at both ends.
      out += to;
      if (pos >= text.size()) return out;
      const std::size_t begin = pos;
      DecodePoint(text, &pos);
      out.append(text, begin, pos - begin);
      continue;
    }
    const std::size_t hit = text.find(from, pos);
    if (hit == std::string::npos) break;
    out.append(text, pos, hit - pos);
    out += to;
    pos = hit + from.size();
  }
  out.append(text, pos);
  return out;
}

Result<std::string> PadText(Vm& vm, const std::string& text, std::int64_t width,
                            std::string_view fill, char align) {
  const auto length = static_cast<std::int64_t>(CountPoints(text));
  if (width <= length) return text;
  const auto n = static_cast<std::size_t>(width - length);
  HEARTH_TRY(vm.budget().BuildString(
      n > vm.budget().limits().string_bytes_max ? n : n * fill.size()));
  // Python's str.center puts the odd one left when the width is odd.
  const std::size_t left =
      align == '>'   ? n
      : align == '^' ? n / 2 + (n & static_cast<std::size_t>(width) & 1)
                     : 0;
  std::string out;
  for (std::size_t i = 0; i < left; ++i) out += fill;
  out += text;
  for (std::size_t i = left; i < n; ++i) out += fill;
  return out;
}

std::vector<std::string> SplitLines(std::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  std::size_t begin = 0;
  for (std::size_t pos = 0; pos < text.size();) {
    const std::size_t end = pos;
    const char32_t c = DecodePoint(text, &pos);
    const bool breaks = (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) ||
                        c == 0x85 || c == 0x2028 || c == 0x2029;
    if (!breaks) continue;
    if (c == '\r' && pos < text.size() && text[pos] == '\n') ++pos;
    lines.emplace_back(text.substr(begin, (keep_ends ? pos : end) - begin));
    begin = pos;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

Result<std::string> JoinTexts(Vm& vm, const std::vector<std::string>& parts,
                              const std::string& separator) {
  std::size_t bytes = 0;
  const std::size_t bytes_max = vm.budget().limits().string_bytes_max;
  for (const std::string& part : parts) {
    bytes += part.size() + separator.size();
    if (bytes > bytes_max + separator.size()) break;
  }
  if (!parts.empty()) bytes -= separator.size();
  HEARTH_TRY(vm.budget().BuildString(bytes));
  std::string out;
  out.reserve(bytes);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += separator;
    out += parts[i];
  }
  return out;
}

Result<std::string> StringArg(const Value& value, const char* what) {
  if (value.IsString()) return value.text();
  return TypeError(std::string(what) + " needs a string, not '" +
                   value.TypeName() + "'");
}

Result<std::int64_t> IntArg(const Value& value, std::int64_t fallback,
                            const char* what) {
  if (value.IsUndefined() || value.IsNone()) return fallback;
  if (value.IsIntegral()) return value.int_value();
  return TypeError(std::string(what) + " needs an integer, not '" +
                   value.TypeName() + "'");
}

}  // namespace hearth::jinja
