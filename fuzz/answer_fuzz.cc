// Any bytes as an answer of any family (the first byte says which): read in one
// piece and byte by byte it gives the same events, and what a whole call has
// for arguments is JSON.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "output/families.h"
#include "output/reader/tag_value.h"
#include "output/reader/walker.h"

namespace {

using namespace hearth::output;
using Event = hearth::AnswerEvent;

constexpr const char* kTools = R"([{"name": "f", "parameters": {"type":
  "object", "properties": {"s": {"type": "string"}, "n": {"type": "integer"},
  "x": {}}}}])";

// Events with neighbours of one kind put together.
std::vector<Event> EventsOf(const std::shared_ptr<const Program>& family,
                            std::string_view answer, std::size_t piece) {
  static const auto tools =
      std::make_shared<const ToolSet>(ToolSet::Parse(kTools).value());
  Walker walker(family, tools, /*in_thought=*/false);
  std::vector<Event> all;
  const auto take = [&] {
    for (Event& event : walker.Take()) {
      const bool joins = !all.empty() && all.back().kind == event.kind &&
                         all.back().call == event.call &&
                         event.kind != Event::Kind::kCallBegin;
      if (joins) {
        all.back().text += event.text;
      } else {
        all.push_back(std::move(event));
      }
    }
  };
  for (std::size_t i = 0; i < answer.size(); i += piece) {
    walker.Push(answer.substr(i, piece));
    take();
  }
  walker.Finish();
  take();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const auto& families = CallFamilies();
  const auto& family = families[data[0] % families.size()];
  std::string answer;
  for (std::size_t i = 1; i < size; ++i) {
    // A token's code is never cut and never comes from text.
    const auto c = static_cast<char>(data[i]);
    if (c != kTokenByte) answer += c;
  }
  const auto whole = EventsOf(family, answer, answer.size() + 1);
  const auto bytes = EventsOf(family, answer, 1);
  HEARTH_CHECK(whole.size() == bytes.size());
  std::string arguments;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    HEARTH_CHECK(whole[i].kind == bytes[i].kind);
    HEARTH_CHECK(whole[i].text == bytes[i].text);
    if (whole[i].kind == Event::Kind::kCallBegin) arguments.clear();
    if (whole[i].kind == Event::Kind::kCallArguments) arguments = whole[i].text;
    if (whole[i].kind == Event::Kind::kCallEnd) HEARTH_CHECK(IsJson(arguments));
  }
  return 0;
}
