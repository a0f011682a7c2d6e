#include "serve/http/message.h"

#include <algorithm>

namespace hearth::serve {
namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return Lower(x) == Lower(y); });
}

const std::string* HttpRequest::Find(std::string_view name) const {
  for (const HttpHeader& header : headers) {
    if (SameName(header.name, name)) return &header.value;
  }
  return nullptr;
}

}  // namespace hearth::serve
