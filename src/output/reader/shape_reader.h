// Reads the JSON of a call, or of a list of calls, as it comes: finds the name
// and passes the arguments on.
#pragma once

#include <string>
#include <string_view>

#include "output/description/program.h"
#include "output/reader/json_scanner.h"

namespace hearth::output {

// Who is told of calls.
class CallSink {
 public:
  virtual ~CallSink() = default;
  // False when there is no such tool.
  virtual bool BeginCall(const std::string& name) = 0;
  virtual void Arguments(std::string_view json) = 0;
  virtual void EndCall() = 0;
};

class ShapeReader {
 public:
  enum class Got : std::uint8_t { kMore, kDone, kBad };

  // Both outlive the reader. With ShapeKind::kArguments the call has begun.
  ShapeReader(const Shape& shape, CallSink& sink)
      : shape_(&shape), sink_(&sink) {}

  Got Push(char c);
  // What was wrong, after kBad.
  const std::string& problem() const { return problem_; }

 private:
  enum class Capture : std::uint8_t { kNone, kName, kArguments };

  Got Bad(std::string problem);
  bool MayBegin(char c) const;
  Got InCall(char c, JsonScanner::Phase phase, std::size_t depth);
  Got BeginMember(char c);
  Got Named(const std::string& name);
  Got EndOfCall();
  void Pass(std::string_view json);
  std::size_t member_depth() const {
    return shape_->kind == ShapeKind::kCall ? 1 : 2;
  }

  const Shape* shape_;
  CallSink* sink_;
  JsonScanner scanner_;
  Capture capture_ = Capture::kNone;
  std::string key_, name_json_;
  std::string waiting_;  // arguments that came before the name
  bool named_ = false, has_arguments_ = false;
  std::string problem_;
};

}  // namespace hearth::output
