// How to point a program at the server: one line each, ready to copy.
#pragma once

#include <string>

namespace hearth::cli {

// `url`: "http://127.0.0.1:8080".
std::string ClientLines(const std::string& url, const std::string& model,
                        bool can_chat);

}  // namespace hearth::cli
