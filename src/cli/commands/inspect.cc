// hearth inspect: what a model file is.
#include <algorithm>
#include <memory>
#include <string>

#include "base/json.h"
#include "cli/options/command.h"
#include "cli/terminal/units.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

std::string AsJson(const ModelInfo& info) {
  nlohmann::ordered_json json;
  json["path"] = info.path;
  json["file_format"] = info.file_format;
  json["architecture"] = info.architecture;
  json["name"] = info.name;
  json["parameters"] = info.n_parameters;
  json["weight_bytes"] = info.weight_bytes;
  json["layers"] = info.n_layers;
  json["heads"] = info.n_heads;
  json["kv_heads"] = info.n_kv_heads;
  json["head_dim"] = info.head_dim;
  json["d_model"] = info.d_model;
  json["d_mlp"] = info.d_mlp;
  json["vocab_size"] = info.vocab_size;
  json["context_length"] = info.context_length;
  json["positions"] = info.positions;
  json["tokenizer"] = info.tokenizer;
  for (const auto& [format, bytes] : info.kv_bytes_per_token) {
    json["kv_bytes_per_token"][format] = bytes;
  }
  for (const auto& [type, count] : info.tensor_types) {
    json["tensors"][type] = count;
  }
  for (const Capability& c : info.capabilities) {
    json["capabilities"].push_back(
        {{"name", c.name}, {"supported", c.supported}, {"note", c.note}});
  }
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

void AddRow(std::string& text, const std::string& name,
            const std::string& value) {
  text += name + std::string(name.size() < 14 ? 14 - name.size() : 1, ' ') +
          Escaped(value) + "\n";
}

std::string AsText(const ModelInfo& info) {
  std::string text;
  AddRow(text, "model", info.name + " (" + info.architecture + ")");
  AddRow(
      text, "file",
      info.file_format + ", " + HumanBytes(info.weight_bytes) + " of weights");
  AddRow(text, "parameters", HumanCount(info.n_parameters));
  AddRow(text, "shape",
         std::to_string(info.n_layers) + " layers, d_model " +
             std::to_string(info.d_model) + ", d_mlp " +
             std::to_string(info.d_mlp) + ", vocabulary " +
             std::to_string(info.vocab_size));
  AddRow(text, "attention",
         std::to_string(info.n_heads) + " heads on " +
             std::to_string(info.n_kv_heads) + " KV heads, head_dim " +
             std::to_string(info.head_dim) + ", " + info.positions +
             " positions");
  AddRow(text, "context", std::to_string(info.context_length) + " tokens");
  AddRow(text, "tokenizer", info.tokenizer);
  std::string types;
  for (const auto& [type, count] : info.tensor_types) {
    types += (types.empty() ? "" : ", ") + std::to_string(count) + " x " + type;
  }
  AddRow(text, "tensors", types);
  for (const auto& [format, bytes] : info.kv_bytes_per_token) {
    AddRow(text, "KV " + format,
           std::to_string(bytes) + " bytes/token, " +
               HumanBytes(bytes *
                          static_cast<std::uint64_t>(info.context_length)) +
               " at full context");
  }
  text += "\nKV cache\n";
  for (const Capability& c : info.capabilities) {
    std::string row = "  " + c.name;
    row.resize(std::max<std::size_t>(row.size() + 1, 25), ' ');
    text += row + (c.supported ? "yes  " : "no   ") + Escaped(c.note) + "\n";
  }
  return text;
}

}  // namespace

void AddInspect(const Command& program, int& exit_code) {
  struct Args {
    std::string model;
    bool json = false;
  };
  auto args = std::make_shared<Args>();
  Command command = program.Sub(
      "inspect", "Show what a model file is and what its KV cache costs");
  const Option model = command.Name("MODEL", args->model,
                                    "default: the model inside the program");
  command.Name("--model,-m", args->model, "the same").Excludes(model);
  command.Flag("--json", args->json, "one JSON object");
  command.Run(exit_code, [args] {
    const auto info = InspectModel(args->model);
    if (!info.ok()) return Fail(info.error());
    for (const std::string& warning : info->warnings) Note(warning);
    Print(args->json ? AsJson(*info) : AsText(*info));
    return kOk;
  });
}

}  // namespace hearth::cli
