#include "serve/http/head_check.h"

#include <algorithm>

namespace hearth::serve {
namespace {

// RFC 9110, 5.6.2.
bool IsTokenChar(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
         (c >= 'a' && c <= 'z') || kOthers.find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenChar);
}

bool IsDigits(std::string_view text) {
  return !text.empty() && text.size() <= 18 &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// What the fields say of where the request ends and whom it is for.
struct Fields {
  int hosts = 0, lengths = 0, encodings = 0;
};

std::optional<HttpProblem> CheckField(std::string_view line, Fields& fields) {
  if (line.front() == ' ' || line.front() == '\t') {
    return HttpProblem{400,
                       "a header is continued on the next line; send it "
                       "as one line"};
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
    return HttpProblem{400, "a header line is no \"Name: value\""};
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = Trimmed(line.substr(colon + 1));
  if (SameName(name, "host")) {
    ++fields.hosts;
  } else if (SameName(name, "content-length")) {
    ++fields.lengths;
    if (!IsDigits(value)) {
      return HttpProblem{400, "Content-Length is no number"};
    }
  } else if (SameName(name, "transfer-encoding")) {
    ++fields.encodings;
    if (!SameName(value, "chunked")) {
      return HttpProblem{400, "Transfer-Encoding must be \"chunked\" alone"};
    }
  }
  return std::nullopt;
}

std::optional<HttpProblem> CheckFields(const Fields& fields, bool old) {
  if (fields.hosts > 1 || (fields.hosts == 0 && !old)) {
    return HttpProblem{400, "a request needs one Host header"};
  }
  if (fields.lengths > 1 || fields.encodings > 1 ||
      fields.lengths + fields.encodings > 1) {
    return HttpProblem{400,
                       "the body's length is stated more than once; send "
                       "Content-Length or Transfer-Encoding, once"};
  }
  if (old && fields.encodings > 0) {
    return HttpProblem{400, "HTTP/1.0 has no Transfer-Encoding"};
  }
  return std::nullopt;
}

// Also says whether it is HTTP/1.0.
std::optional<HttpProblem> CheckRequestLine(std::string_view line,
                                            std::size_t target_max, bool& old) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last ||
      !IsToken(line.substr(0, first))) {
    return HttpProblem{400, "the first line is no HTTP request"};
  }
  const std::string_view version = line.substr(last + 1);
  old = version == "HTTP/1.0";
  if (!old && version != "HTTP/1.1") {
    return HttpProblem{505, "use HTTP/1.1"};
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.size() > target_max) {
    return HttpProblem{
        414, "the URL is longer than " + std::to_string(target_max) + " bytes"};
  }
  const bool printable = std::all_of(target.begin(), target.end(), [](char c) {
    return c > ' ' && c < 0x7f && c != '#';
  });
  if (!target.starts_with('/') || !printable) {
    return HttpProblem{400,
                       "the URL must be a path that begins with /, "
                       "other characters as %XX"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<HttpProblem> CheckHead(std::string_view head,
                                     std::size_t target_max) {
  Fields fields;
  bool first = true, old = false;
  while (!head.empty()) {
    const std::size_t end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    const bool clean = std::all_of(line.begin(), line.end(), [](char c) {
      return (c >= ' ' || c == '\t' || c < 0) && c != 0x7f;
    });
    if (end == std::string_view::npos || !clean) {
      return HttpProblem{400,
                         "the head has control characters, or lines that "
                         "do not end in CR LF"};
    }
    head.remove_prefix(end + 2);
    if (line.empty()) break;
    const auto problem = first ? CheckRequestLine(line, target_max, old)
                               : CheckField(line, fields);
    if (problem.has_value()) return problem;
    first = false;
  }
  if (first || !head.empty()) {
    return HttpProblem{400, "the head is not one request"};
  }
  return CheckFields(fields, old);
}

}  // namespace hearth::serve
