// The page's files, which lie inside the program.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::serve {

struct PageAsset {
  std::string_view content_type;
  std::string_view bytes;
  std::string etag;  // strong, with its quotation marks
};

// "/", "/page.css", "/page.js", "/icon.svg"; null: no file of the page.
const PageAsset* FindPageAsset(std::string_view path);

// What every answer with a file of the page carries: no code and no data but
// the server's own, no frame around it. Names and values.
const std::vector<std::pair<std::string_view, std::string_view>>& PageHeaders();

}  // namespace hearth::serve
