#include "output/reader/shape_reader.h"

#include <utility>

#include "base/json.h"

namespace hearth::output {

using Phase = JsonScanner::Phase;

ShapeReader::Got ShapeReader::Bad(std::string problem) {
  problem_ = std::move(problem);
  return Got::kBad;
}

// Containers where the shape has them: nothing else is a call.
bool ShapeReader::MayBegin(char c) const {
  const bool list = shape_->kind == ShapeKind::kCalls ||
                    shape_->kind == ShapeKind::kNamedCalls;
  if (scanner_.depth() == 0) return c == (list ? '[' : '{');
  if (!list || scanner_.depth() != 1) return true;
  switch (scanner_.phase()) {
    case Phase::kFirstItem:
      return c == '{' || c == ']';
    case Phase::kValue:
      return c == '{';
    default:
      return true;
  }
}

ShapeReader::Got ShapeReader::Push(char c) {
  const Phase phase = scanner_.phase();
  const std::size_t depth = scanner_.depth();
  if (!IsBlank(c) && !MayBegin(c)) return Bad("a call has another form");
  if (!scanner_.Push(c)) return Bad("a call is no JSON");
  if (shape_->kind == ShapeKind::kArguments) {
    const bool in_string = phase == Phase::kInString || phase == Phase::kInKey;
    sink_->Arguments(Escaped(c, in_string));
    if (!scanner_.done()) return Got::kMore;
    sink_->EndCall();
    return Got::kDone;
  }
  const Got got = InCall(c, phase, depth);
  if (got != Got::kMore) return got;
  return scanner_.done() ? Got::kDone : Got::kMore;
}

ShapeReader::Got ShapeReader::InCall(char c, Phase phase, std::size_t depth) {
  const std::size_t members = member_depth();
  if (capture_ != Capture::kNone) {
    if (capture_ == Capture::kName) {
      name_json_ += c;
    } else {
      const bool in_string =
          phase == Phase::kInString || phase == Phase::kInKey;
      Pass(Escaped(c, in_string));
    }
    if (scanner_.depth() != members || scanner_.phase() != Phase::kAfterValue) {
      return Got::kMore;
    }
    if (std::exchange(capture_, Capture::kNone) != Capture::kName) {
      return Got::kMore;
    }
    const Json name = Json::parse(name_json_, nullptr, false);
    if (!name.is_string()) return Bad("a call's name is no string");
    return Named(name.get<std::string>());
  }
  if (depth != members) return Got::kMore;
  if (scanner_.depth() < members) return EndOfCall();
  if (phase == Phase::kInKey) {
    if (scanner_.phase() == Phase::kInKey) key_ += c;
  } else if (scanner_.phase() == Phase::kInKey) {
    key_.clear();
  } else if (phase == Phase::kMember && !IsBlank(c)) {
    return BeginMember(c);
  }
  return Got::kMore;
}

ShapeReader::Got ShapeReader::BeginMember(char c) {
  const bool arguments =
      shape_->kind == ShapeKind::kNamedCalls || key_ == shape_->arguments_key;
  if (arguments) {
    if (c != '{') return Bad("a call's arguments are no object");
    if (has_arguments_) return Bad("a call has arguments twice");
    if (shape_->kind == ShapeKind::kNamedCalls) {
      const Json name = Json::parse("\"" + key_ + "\"", nullptr, false);
      if (!name.is_string()) return Bad("a call's name is no string");
      if (Named(name.get<std::string>()) == Got::kBad) return Got::kBad;
    }
    capture_ = Capture::kArguments;
    has_arguments_ = true;
    Pass("{");
  } else if (key_ == shape_->name_key) {
    if (c != '"') return Bad("a call's name is no string");
    if (named_) return Bad("a call has two names");
    capture_ = Capture::kName;
    name_json_ = c;
  }
  return Got::kMore;
}

ShapeReader::Got ShapeReader::Named(const std::string& name) {
  if (!sink_->BeginCall(name)) {
    return Bad("no tool is named \"" + name + "\"");
  }
  named_ = true;
  if (!waiting_.empty()) sink_->Arguments(std::exchange(waiting_, {}));
  return Got::kMore;
}

ShapeReader::Got ShapeReader::EndOfCall() {
  if (!named_) return Bad("a call has no name");
  if (!has_arguments_) sink_->Arguments("{}");
  sink_->EndCall();
  named_ = has_arguments_ = false;
  return Got::kMore;
}

void ShapeReader::Pass(std::string_view json) {
  if (named_) {
    sink_->Arguments(json);
  } else {
    waiting_ += json;
  }
}

}  // namespace hearth::output
