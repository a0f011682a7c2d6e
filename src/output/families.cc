#include "output/families.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "output/description/description.h"
#include "output_families.h"

namespace hearth::output {
namespace {

std::shared_ptr<const Program> Parsed(std::string_view text) {
  auto program = ParseDescription(text);
  HEARTH_CHECK(program.ok());  // families_test.cc reads each of them
  return std::make_shared<const Program>(std::move(*program));
}

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

const std::vector<std::shared_ptr<const Program>>& CallFamilies() {
  static const auto families = [] {
    std::vector<std::shared_ptr<const Program>> all;
    for (const std::string_view text : kFamilyTexts)
      all.push_back(Parsed(text));
    return all;
  }();
  return families;
}

std::shared_ptr<const Program> FamilyNamed(std::string_view name) {
  for (const auto& family : CallFamilies()) {
    if (family->family == name) return family;
  }
  return nullptr;
}

std::shared_ptr<const Program> ThoughtFamily(std::string_view begin,
                                             std::string_view end) {
  if (begin.empty() || end.empty()) {
    return Parsed("family text\nanswer = text as content\n");
  }
  const std::string from = Quoted(begin), to = Quoted(end);
  return Parsed("family thought\nthought " + from + " " + to +
                "\nanswer = ws <<" + from +
                ">> thought | text as content\n"
                "thought = ws text as reasoning ws (<<" +
                to + ">> ws text as content)?\n");
}

}  // namespace hearth::output
