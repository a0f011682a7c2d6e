#include "serve/page/assets.h"

#include <array>

#include "base/bytes.h"
#include "base/hash.h"

extern "C" {
// assets.S
extern const char hearth_page_html_begin[], hearth_page_html_end[];
extern const char hearth_page_css_begin[], hearth_page_css_end[];
extern const char hearth_page_js_begin[], hearth_page_js_end[];
extern const char hearth_page_icon_begin[], hearth_page_icon_end[];
}

namespace hearth::serve {
namespace {

std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

struct NamedAsset {
  std::string_view path;
  PageAsset asset;
};

NamedAsset Make(std::string_view path, std::string_view content_type,
                std::string_view bytes) {
  Sha256 sum;
  sum.Update(AsBytes(bytes));
  return {
      path,
      {content_type, bytes, "\"" + ToHex(sum.Finish(), /*n_bytes=*/16) + "\""}};
}

}  // namespace

const PageAsset* FindPageAsset(std::string_view path) {
  static const std::array<NamedAsset, 4> assets = {
      Make("/", "text/html; charset=utf-8",
           Between(hearth_page_html_begin, hearth_page_html_end)),
      Make("/page.css", "text/css; charset=utf-8",
           Between(hearth_page_css_begin, hearth_page_css_end)),
      Make("/page.js", "text/javascript; charset=utf-8",
           Between(hearth_page_js_begin, hearth_page_js_end)),
      Make("/icon.svg", "image/svg+xml",
           Between(hearth_page_icon_begin, hearth_page_icon_end))};
  for (const NamedAsset& asset : assets) {
    if (asset.path == path) return &asset.asset;
  }
  return nullptr;
}

const std::vector<std::pair<std::string_view, std::string_view>>&
PageHeaders() {
  static const std::vector<std::pair<std::string_view, std::string_view>>
      headers = {{"Content-Security-Policy",
                  "default-src 'none'; script-src 'self'; style-src 'self'; "
                  "img-src 'self'; connect-src 'self'; base-uri 'none'; "
                  "form-action 'none'; frame-ancestors 'none'"},
                 {"Referrer-Policy", "no-referrer"},
                 {"Cross-Origin-Opener-Policy", "same-origin"},
                 {"Cross-Origin-Resource-Policy", "same-origin"},
                 {"Cache-Control", "no-cache"}};
  return headers;
}

}  // namespace hearth::serve
