// What tests of answers ask.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "output/reader/walker.h"

namespace hearth::output {

// Events in one line: "R:..|" reasoning, "T:..|" text, "C0:name(args)|" a whole
// call, "C0:name(args" an open one, "F|" a fault.
inline std::string Shown(const std::vector<AnswerEvent>& events) {
  std::string out;
  auto last = AnswerEvent::Kind::kCallEnd;
  for (const AnswerEvent& event : events) {
    using Kind = AnswerEvent::Kind;
    const bool joins = event.kind == last;
    last = event.kind;
    switch (event.kind) {
      case Kind::kReasoning:
      case Kind::kText:
        if (joins) {
          out.pop_back();
        } else {
          out += event.kind == Kind::kText ? "T:" : "R:";
        }
        out += event.text + "|";
        break;
      case Kind::kCallBegin:
        out += "C" + std::to_string(event.call) + ":" + event.text + "(";
        break;
      case Kind::kCallArguments:
        out += event.text;
        break;
      case Kind::kCallEnd:
        out += ")|";
        break;
      case Kind::kFault:
        out += "F|";
        break;
    }
  }
  return out;
}

inline std::shared_ptr<const ToolSet> Tools(std::string_view json) {
  return std::make_shared<const ToolSet>(ToolSet::Parse(json).value());
}

// Reads `pieces` one after another.
inline std::string Read(const std::shared_ptr<const Program>& program,
                        const std::shared_ptr<const ToolSet>& tools,
                        const std::vector<std::string>& pieces,
                        bool in_thought = false) {
  Walker walker(program, tools, in_thought);
  std::vector<AnswerEvent> all;
  const auto take = [&] {
    for (AnswerEvent& event : walker.Take()) all.push_back(std::move(event));
  };
  for (const std::string& piece : pieces) {
    walker.Push(piece);
    take();
  }
  walker.Finish();
  take();
  return Shown(all);
}

}  // namespace hearth::output
