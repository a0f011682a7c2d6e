#include "output/probe/rendered_answer.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace hearth::output {
namespace {

std::size_t CommonBytes(std::string_view a, std::string_view b) {
  const auto differ = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  return static_cast<std::size_t>(differ.first - a.begin());
}

// Some templates join strings in a way that makes Jinja write quotes as HTML;
// the models that they are for never do.
std::string WithoutHtml(std::string text) {
  constexpr std::array<std::pair<std::string_view, char>, 5> kEntities = {
      {{"&#34;", '"'},
       {"&#39;", '\''},
       {"&lt;", '<'},
       {"&gt;", '>'},
       {"&amp;", '&'}}};
  if (text.find("&#34;") == std::string::npos) return text;
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const auto entity =
        std::find_if(kEntities.begin(), kEntities.end(), [&](const auto& e) {
          return std::string_view(text).substr(i).starts_with(e.first);
        });
    if (entity == kEntities.end()) {
      out += text[i++];
    } else {
      out += entity->second;
      i += entity->first.size();
    }
  }
  return out;
}

}  // namespace

Result<RenderedAnswer> RenderAnswer(const ChatTemplate& chat,
                                    const OrderedJson& messages,
                                    const OrderedJson* tools,
                                    RenderOptions options) {
  OrderedJson before = messages;
  before.erase(before.size() - 1);
  options.add_generation_prompt = true;
  HEARTH_ASSIGN(const std::string prompt, chat.Render(before, tools, options));
  options.add_generation_prompt = false;
  HEARTH_ASSIGN(std::string whole, chat.Render(messages, tools, options));
  std::size_t n = CommonBytes(prompt, whole);
  // The two may part inside a marker: a prompt that ends with "<think>" and an
  // answer that goes on with "<tool_call>". Markers begin with one of these.
  constexpr std::size_t kMarkerBytesMax = 32;
  if (n < prompt.size()) {
    const std::size_t from = n - std::min(n, kMarkerBytesMax);
    const std::size_t mark = whole.find_last_of("<[>]\n", n == 0 ? 0 : n - 1);
    const bool inside = mark != std::string::npos && mark >= from &&
                        (whole[mark] == '<' || whole[mark] == '[');
    if (inside) n = mark;
  }
  return RenderedAnswer{.text = WithoutHtml(whole.substr(n)),
                        .prompt_end = prompt.substr(0, n)};
}

}  // namespace hearth::output
