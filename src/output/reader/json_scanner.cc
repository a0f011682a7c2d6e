#include "output/reader/json_scanner.h"

#include <cctype>
#include <string_view>

#include "output/description/program.h"

namespace hearth::output {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsHex(char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

bool JsonScanner::Bad() {
  phase_ = Phase::kBad;
  return false;
}

void JsonScanner::ValueEnded() {
  phase_ = containers_.empty() ? Phase::kDone : Phase::kAfterValue;
}

bool JsonScanner::NumberMayEnd() const {
  return number_ == Number::kZero || number_ == Number::kWhole ||
         number_ == Number::kFraction || number_ == Number::kExponent;
}

bool JsonScanner::Push(char c) {
  switch (phase_) {
    case Phase::kInKey:
    case Phase::kInString:
      return InString(c);
    case Phase::kInNumber:
      return InNumber(c);
    case Phase::kInWord:
      if (c != *word_) return Bad();
      if (*++word_ == '\0') ValueEnded();
      return true;
    case Phase::kDone:
      return IsBlank(c) || Bad();
    case Phase::kBad:
      return false;
    default:
      break;
  }
  if (IsBlank(c)) return true;
  switch (phase_) {
    case Phase::kFirstItem:
      if (c == ']') return AfterValue(c);
      return BeginValue(c);
    case Phase::kFirstKey:
      if (c == '}') return AfterValue(c);
      [[fallthrough]];
    case Phase::kNextKey:
      if (c != '"') return Bad();
      phase_ = Phase::kInKey;
      return true;
    case Phase::kColon:
      if (c != ':') return Bad();
      phase_ = Phase::kMember;
      return true;
    case Phase::kAfterValue:
      return AfterValue(c);
    default:
      return BeginValue(c);
  }
}

bool JsonScanner::BeginValue(char c) {
  switch (c) {
    case '{':
    case '[':
      if (containers_.size() >= kDepthMax) return Bad();
      containers_ += c;
      phase_ = c == '{' ? Phase::kFirstKey : Phase::kFirstItem;
      return true;
    case '"':
      phase_ = Phase::kInString;
      return true;
    case 't':
      word_ = "rue";
      break;
    case 'f':
      word_ = "alse";
      break;
    case 'n':
      word_ = "ull";
      break;
    default:
      if (c != '-' && !IsDigit(c)) return Bad();
      number_ = c == '-'   ? Number::kSign
                : c == '0' ? Number::kZero
                           : Number::kWhole;
      phase_ = Phase::kInNumber;
      return true;
  }
  phase_ = Phase::kInWord;
  return true;
}

bool JsonScanner::InString(char c) {
  if (n_hex_ > 0) {
    if (!IsHex(c)) return Bad();
    --n_hex_;
    return true;
  }
  if (escape_) {
    escape_ = false;
    if (c == 'u') n_hex_ = 4;
    return std::string_view("\"\\/bfnrtu").find(c) != std::string_view::npos ||
           Bad();
  }
  if (c == '\\') {
    escape_ = true;
  } else if (c == '"') {
    if (phase_ == Phase::kInKey) {
      phase_ = Phase::kColon;
    } else {
      ValueEnded();
    }
  }
  return true;
}

bool JsonScanner::InNumber(char c) {
  const bool digit = IsDigit(c);
  const bool e = c == 'e' || c == 'E';
  switch (number_) {
    case Number::kSign:
      if (!digit) return Bad();
      number_ = c == '0' ? Number::kZero : Number::kWhole;
      return true;
    case Number::kZero:
    case Number::kWhole:
      if (digit && number_ == Number::kWhole) return true;
      if (c == '.' || e) {
        number_ = e ? Number::kE : Number::kPoint;
        return true;
      }
      break;
    case Number::kPoint:
      if (!digit) return Bad();
      number_ = Number::kFraction;
      return true;
    case Number::kFraction:
      if (digit) return true;
      if (e) {
        number_ = Number::kE;
        return true;
      }
      break;
    case Number::kE:
      if (!digit && c != '+' && c != '-') return Bad();
      number_ = digit ? Number::kExponent : Number::kESign;
      return true;
    case Number::kESign:
      if (!digit) return Bad();
      number_ = Number::kExponent;
      return true;
    case Number::kExponent:
      if (digit) return true;
      break;
  }
  // The number is over with what came before.
  ValueEnded();
  return Push(c);
}

bool JsonScanner::AfterValue(char c) {
  const char open = containers_.back();
  if (c == ',' && phase_ == Phase::kAfterValue) {
    phase_ = open == '{' ? Phase::kNextKey : Phase::kValue;
    return true;
  }
  if (c != (open == '{' ? '}' : ']')) return Bad();
  containers_.pop_back();
  ValueEnded();
  return true;
}

std::string Escaped(char c, bool in_string) {
  const auto byte = static_cast<unsigned char>(c);
  if (!in_string || byte >= 0x20) return {c};
  switch (c) {
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      break;
  }
  constexpr char kHex[] = "0123456789abcdef";
  return {'\\', 'u', '0', '0', kHex[byte >> 4], kHex[byte & 15]};
}

std::string JsonStringPart(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += Escaped(c, true);
  }
  return out;
}

}  // namespace hearth::output
