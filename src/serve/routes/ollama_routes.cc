// What Ollama's clients ask beside answers: there is one model, and it stays.
#include <ctime>

#include "hearth/version.h"
#include "serve/routes/routes.h"

namespace hearth::serve {
namespace {

// Ollama's clients ask for features by this number; it is the version of its
// interface that is spoken here, not hearth's.
constexpr const char* kInterfaceVersion = "0.12.0";

std::string Time(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  ::gmtime_r(&time, &parts);
  char text[40];
  return std::string(
      text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.000000000Z",
                          &parts));
}

OrderedJson Details(const Core& core) {
  const ModelInfo& info = core.engine->info();
  // The number format of most tensors.
  std::string format;
  std::uint64_t most = 0;
  for (const auto& type : info.tensor_types) {
    if (type.second > most) {
      most = type.second;
      format = type.first;
    }
  }
  char size[32];
  std::snprintf(size, sizeof(size), "%.1fB",
                static_cast<double>(info.n_parameters) / 1e9);
  return {{"parent_model", ""},
          {"format", "gguf"},
          {"family", info.architecture},
          {"families", OrderedJson::array({info.architecture})},
          {"parameter_size", size},
          {"quantization_level", format}};
}

OrderedJson ModelOf(const Core& core) {
  return {{"name", core.served.id},
          {"model", core.served.id},
          {"modified_at", Time(core.served.created)},
          {"size", core.engine->info().weight_bytes},
          {"digest", ""},
          {"details", Details(core)}};
}

HttpAnswer Tags(Core& core, const Call&) {
  return JsonAnswer({{"models", OrderedJson::array({ModelOf(core)})}});
}

HttpAnswer Running(Core& core, const Call&) {
  OrderedJson model = ModelOf(core);
  // It never unloads: a day that does not come.
  model["expires_at"] = "9999-12-31T23:59:59Z";
  model["size_vram"] = 0;
  model["context_length"] = core.served.context_tokens;
  return JsonAnswer({{"models", OrderedJson::array({model})}});
}

HttpAnswer Show(Core& core, const Call&) {
  const ModelInfo& info = core.engine->info();
  const std::string& a = info.architecture;
  OrderedJson capabilities = OrderedJson::array({"completion"});
  if (core.dialogue != nullptr && !core.dialogue->tool_format().empty()) {
    capabilities.push_back("tools");
  }
  if (core.dialogue != nullptr && core.dialogue->Reads("enable_thinking")) {
    capabilities.push_back("thinking");
  }
  return JsonAnswer({{"license", ""},
                     {"modelfile", ""},
                     {"parameters", ""},
                     {"template", core.chat_template},
                     {"details", Details(core)},
                     {"model_info",
                      {{"general.architecture", a},
                       {"general.parameter_count", info.n_parameters},
                       {a + ".context_length", core.served.context_tokens},
                       {a + ".block_count", info.n_layers},
                       {a + ".embedding_length", info.d_model},
                       {a + ".attention.head_count", info.n_heads},
                       {a + ".attention.head_count_kv", info.n_kv_heads}}},
                     {"capabilities", capabilities},
                     {"modified_at", Time(core.served.created)}});
}

HttpAnswer Version(Core&, const Call&) {
  return JsonAnswer({{"version", kInterfaceVersion}, {"hearth", kVersion}});
}

constexpr Route kRoutes[] = {{"GET", "/api/tags", Tags},
                             {"GET", "/api/ps", Running},
                             {"POST", "/api/show", Show},
                             {"GET", "/api/version", Version}};

}  // namespace

std::span<const Route> OllamaRoutes() { return kRoutes; }

}  // namespace hearth::serve
