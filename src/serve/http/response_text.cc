#include "serve/http/response_text.h"

#include <algorithm>
#include <cstdio>
#include <ctime>

namespace hearth::serve {
namespace {

struct Reason {
  int status;
  const char* words;
};
constexpr Reason kReasons[] = {{100, "Continue"},
                               {200, "OK"},
                               {204, "No Content"},
                               {304, "Not Modified"},
                               {400, "Bad Request"},
                               {401, "Unauthorized"},
                               {403, "Forbidden"},
                               {404, "Not Found"},
                               {405, "Method Not Allowed"},
                               {408, "Request Timeout"},
                               {413, "Content Too Large"},
                               {414, "URI Too Long"},
                               {415, "Unsupported Media Type"},
                               {417, "Expectation Failed"},
                               {431, "Request Header Fields Too Large"},
                               {500, "Internal Server Error"},
                               {501, "Not Implemented"},
                               {503, "Service Unavailable"},
                               {505, "HTTP Version Not Supported"}};

const char* ReasonOf(int status) {
  for (const Reason& reason : kReasons) {
    if (reason.status == status) return reason.words;
  }
  return "Status";
}

std::string Date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::gmtime_r(&now, &parts);
  char text[64];
  // The program never leaves the C locale, so names are English.
  const std::size_t n =
      std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  return std::string(text, n);
}

void AddHeader(std::string& to, std::string_view name, std::string_view value) {
  to.append(name).append(": ");
  std::transform(value.begin(), value.end(), std::back_inserter(to),
                 [](char c) { return c >= 0 && c < ' ' ? ' ' : c; });
  to.append("\r\n");
}

}  // namespace

std::string ResponseHead(int status, std::string_view content_type,
                         const std::vector<HttpHeader>& headers, BodyEnd end,
                         std::uint64_t length, bool keep_alive) {
  std::string head =
      "HTTP/1.1 " + std::to_string(status) + " " + ReasonOf(status) + "\r\n";
  AddHeader(head, "Date", Date());
  if (!content_type.empty()) AddHeader(head, "Content-Type", content_type);
  // Answers hold conversations; no one in between keeps or guesses at them,
  // unless an answer is a file and says so.
  const bool says_itself = std::any_of(
      headers.begin(), headers.end(),
      [](const HttpHeader& h) { return SameName(h.name, "Cache-Control"); });
  if (!says_itself) AddHeader(head, "Cache-Control", "no-store");
  AddHeader(head, "X-Content-Type-Options", "nosniff");
  for (const HttpHeader& header : headers) {
    AddHeader(head, header.name, header.value);
  }
  const bool bodiless = status == 204 || status == 304;
  if (end == BodyEnd::kLength && !bodiless) {
    AddHeader(head, "Content-Length", std::to_string(length));
  } else if (end == BodyEnd::kChunks) {
    AddHeader(head, "Transfer-Encoding", "chunked");
  }
  AddHeader(head, "Connection", keep_alive ? "keep-alive" : "close");
  return head + "\r\n";
}

std::string Chunk(std::string_view bytes) {
  char size[24];
  const int n = std::snprintf(size, sizeof(size), "%zx\r\n", bytes.size());
  std::string chunk(size, static_cast<std::size_t>(n));
  return chunk.append(bytes).append("\r\n");
}

}  // namespace hearth::serve
