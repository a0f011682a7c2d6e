// The recorded requests of real clients (../shared/recordings).
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "hearth_test_paths.h"
#include "serve/wire/json/body_json.h"

namespace hearth::serve {

struct Recording {
  std::string file = {}, client = {}, step = {}, method = {}, path = {},
              query = {}, body = {};
};

// In the order of their file names; empty where there are none.
inline std::vector<Recording> Recordings() {
  namespace fs = std::filesystem;
  std::vector<Recording> all;
  std::error_code none;
  for (const auto& entry : fs::recursive_directory_iterator(
           std::string(HEARTH_SHARED) + "/recordings", none)) {
    const std::string name = entry.path().filename().string();
    if (name.find("-request.json") == std::string::npos) continue;
    std::ifstream in(entry.path());
    std::stringstream text;
    text << in.rdbuf();
    const OrderedJson json = OrderedJson::parse(text.str());
    Recording one = {.file = json["client"].get<std::string>() + "/" + name,
                     .client = json["client"],
                     .step = json["step"],
                     .method = json["method"],
                     .path = json["path"]};
    const std::size_t mark = one.path.find('?');
    if (mark != std::string::npos) {
      one.query = one.path.substr(mark + 1);
      one.path.resize(mark);
    }
    if (json.contains("body")) one.body = json["body"].dump();
    all.push_back(std::move(one));
  }
  std::sort(all.begin(), all.end(), [](const Recording& a, const Recording& b) {
    return a.file < b.file;
  });
  return all;
}

}  // namespace hearth::serve
