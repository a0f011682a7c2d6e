#include "formats/families/unread.h"

namespace hearth {
namespace {

struct Unread {
  std::string_view start;  // of the class' name, or the architecture
  const char* name;
  const char* adds;
};

// None of these has had a reference that its logits could be held against.
constexpr Unread kUnread[] = {
    {"Gemma3n", "Gemma 3n", "four streams, low-rank paths beside the layers"},
    {"gemma3n", "Gemma 3n", "four streams, low-rank paths beside the layers"},
    {"HunYuanDense", "Hunyuan dense", "norms of heads behind the rotation"},
    {"hunyuan-dense", "Hunyuan dense", "norms of heads behind the rotation"},
    {"Ernie4_5_Moe", "ERNIE 4.5 with experts", "a router of its own"},
    {"ernie4_5-moe", "ERNIE 4.5 with experts", "a router of its own"},
    {"MuseGlimmer", "Muse Glimmer", "norms without weights, gated outputs"},
    {"muse-glimmer", "Muse Glimmer", "norms without weights, gated outputs"},
    {"Qwen3VLMoe", "Qwen3-VL with experts", "experts in its own order"},
    {"qwen3vlmoe", "Qwen3-VL with experts", "experts in its own order"},
};

}  // namespace

std::string UnreadFamilyNote(std::string_view class_or_architecture) {
  for (const Unread& one : kUnread) {
    if (!class_or_architecture.starts_with(one.start)) continue;
    return std::string(one.name) + " (" + one.adds +
           ") is not computed yet, since nothing could be held against it; "
           "take a model of another family";
  }
  return "";
}

}  // namespace hearth
