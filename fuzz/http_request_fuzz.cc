// HTTP requests from a socket: the first byte says into what pieces the rest is
// cut. However it is cut, the requests in it are the same.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http/request_parser.h"

namespace {

using hearth::serve::RequestParser;

// What came out, as text that can be compared.
std::string Read(std::string_view input, std::size_t piece) {
  const hearth::serve::HttpLimits limits = {
      .head_bytes = 512, .target_bytes = 64, .body_bytes = 256};
  std::string seen, held;
  auto parser = std::make_unique<RequestParser>(limits);
  for (std::size_t at = 0; at < input.size(); at += piece) {
    held += input.substr(at, piece);
    while (!held.empty()) {
      const std::size_t taken = parser->Feed(held);
      held.erase(0, taken);
      if (parser->state() == RequestParser::State::kBad) {
        return seen + "bad " + std::to_string(parser->problem().status);
      }
      if (parser->state() == RequestParser::State::kDone) {
        const hearth::serve::HttpRequest& request = parser->request();
        seen += request.method + ' ' + request.path + '?' + request.query;
        for (const auto& header : request.headers) {
          seen += '\n' + header.name + ':' + header.value;
        }
        seen += '\n' + request.body + '\n';
        parser = std::make_unique<RequestParser>(limits);
      } else if (taken == 0) {
        break;
      }
    }
  }
  return seen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1,
                               size - 1);
  const std::string whole = Read(input, std::max<std::size_t>(input.size(), 1));
  const std::string cut = Read(input, std::size_t{data[0]} % 16 + 1);
  // What is refused may be refused a piece earlier; no request is another.
  const std::string_view complete =
      std::string_view(whole).substr(0, whole.rfind("bad "));
  const std::string_view pieces =
      std::string_view(cut).substr(0, cut.rfind("bad "));
  const std::size_t common = std::min(complete.size(), pieces.size());
  if (complete.substr(0, common) != pieces.substr(0, common)) std::abort();
  return 0;
}
