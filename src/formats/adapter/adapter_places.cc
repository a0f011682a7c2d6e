#include "formats/adapter/adapter_places.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "formats/describe.h"

namespace hearth {
namespace {

// "model.layers.12.mlp.up_proj": its stem with {} for numbers, and the first.
struct ParsedName {
  std::string stem;
  int layer = -1;
  int n_numbers = 0;
};

ParsedName Parse(std::string_view name) {
  ParsedName parsed;
  while (true) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view part = name.substr(0, dot);
    int number = 0;
    const auto [end, error] =
        std::from_chars(part.data(), part.data() + part.size(), number);
    if (!part.empty() && error == std::errc() &&
        end == part.data() + part.size() && number >= 0) {
      if (parsed.n_numbers++ == 0) parsed.layer = number;
      parsed.stem += "{}";
    } else {
      parsed.stem += part;
    }
    if (dot == name.size()) return parsed;
    parsed.stem += '.';
    name.remove_prefix(dot + 1);
  }
}

// The names that a layer may have in a model alone: of one that sees images,
// or of one without its head's class.
std::vector<std::string> NamesAlone(std::string_view name, AdapterForm form,
                                    const NameScheme& scheme) {
  std::vector<std::string> names = {std::string(name)};
  if (form == AdapterForm::kGguf) return names;
  for (const auto& [prefix, alone] :
       {std::pair<std::string_view, std::string_view>{"model.language_model.",
                                                      "model."},
        {"language_model.model.", "model."},
        {"language_model.lm_head", "lm_head"}}) {
    if (!name.starts_with(prefix)) continue;
    names.push_back(std::string(alone).append(name.substr(prefix.size())));
  }
  const std::string embedding = WeightName(scheme, Role::kTokenEmbedding);
  names.push_back(
      embedding.substr(0, embedding.find('.') + 1).append(std::string(name)));
  return names;
}

// Finds the matrices of one role in one layer.
class Finder {
 public:
  Finder(LoadedModel& model, int layer)
      : model_(model),
        config_(model.config),
        layer_(layer),
        w_(model.weights.layers[static_cast<std::size_t>(layer)]) {}

  AdapterPlaces Of(Role role) {
    switch (role) {
      case Role::kQ:
      case Role::kCrossQ:
      case Role::kQUp:
        return Queries();
      case Role::kK:
        return Keys();
      case Role::kV:
        return Part(w_.v, w_.qkv, q_dim() + kv_dim(), kv_dim());
      case Role::kQkv:
        return AllThree();
      case Role::kGate:
        return Gate(w_.mlp);
      case Role::kUp:
        return Up(w_.mlp);
      case Role::kGateUp:
        return Both(w_.mlp);
      case Role::kSharedGate:
        return Gate(w_.shared_expert);
      case Role::kSharedUp:
        return Up(w_.shared_expert);
      case Role::kSharedGateUp:
        return Both(w_.shared_expert);
      default:
        return Alone(role);
    }
  }

 private:
  std::int64_t q_dim() const {
    return std::int64_t{config_.n_heads} * config_.HeadDim(layer_);
  }
  std::int64_t kv_dim() const {
    return std::int64_t{config_.KvHeads(layer_)} * config_.HeadDim(layer_);
  }

  static AdapterPlaces Whole(Linear& linear) {
    if (linear.empty()) return {};
    return {.places = {{&linear, 0, 0, linear.w.n_out}}};
  }
  // `alone`, or these rows of `fused`.
  static AdapterPlaces Part(Linear& alone, Linear& fused, std::int64_t first,
                            std::int64_t n) {
    if (!alone.empty() || fused.empty()) return Whole(alone);
    return {.places = {{&fused, first, 0, n}}};
  }

  AdapterPlaces Turning(AdapterPlaces places) const {
    places.head_dim = config_.HeadDim(layer_);
    places.rotary_dim = config_.rope.rotary_dim;
    // Of heads that are not turned as one there is no other order.
    places.reordered = config_.latent.kv_rank > 0 || config_.attention_gate;
    return places;
  }
  AdapterPlaces Queries() { return Turning(Part(w_.q, w_.qkv, 0, q_dim())); }
  AdapterPlaces Keys() {
    return Turning(Part(w_.k, w_.qkv, q_dim(), kv_dim()));
  }
  AdapterPlaces AllThree() {
    AdapterPlaces all = Whole(w_.qkv);
    if (w_.qkv.empty() && !w_.q.empty() && !w_.k.empty() && !w_.v.empty()) {
      all.places = {{&w_.q, 0, 0, w_.q.w.n_out},
                    {&w_.k, 0, w_.q.w.n_out, w_.k.w.n_out},
                    {&w_.v, 0, w_.q.w.n_out + w_.k.w.n_out, w_.v.w.n_out}};
    }
    all.reordered = true;
    return all;
  }

  static AdapterPlaces Gate(MlpWeights& mlp) {
    if (mlp.interleaved) return {};
    return Part(mlp.gate, mlp.gate_up, 0, mlp.gate_up.w.n_out / 2);
  }
  static AdapterPlaces Up(MlpWeights& mlp) {
    if (mlp.interleaved) return {};
    const std::int64_t n = mlp.gate_up.w.n_out / 2;
    return Part(mlp.up, mlp.gate_up, n, n);
  }
  static AdapterPlaces Both(MlpWeights& mlp) {
    if (!mlp.gate_up.empty()) return Whole(mlp.gate_up);
    if (mlp.gate.empty() || mlp.up.empty()) return {};
    return {.places = {{&mlp.gate, 0, 0, mlp.gate.w.n_out},
                       {&mlp.up, 0, mlp.gate.w.n_out, mlp.up.w.n_out}}};
  }

  // Of the roles that are one matrix each.
  AdapterPlaces Alone(Role role) {
    DeltaNetWeights& net = w_.delta_net;
    const std::pair<Role, Linear*> kNets[] = {
        {Role::kDeltaQkv, &net.qkv},
        {Role::kDeltaGate, &net.gate},
        {Role::kDeltaQkvGate, &net.qkv_gate},
        {Role::kDeltaRate, &net.rate},
        {Role::kDeltaDecay, &net.decay},
        {Role::kDeltaRateDecay, &net.rate_decay},
        {Role::kDeltaOut, &net.out}};
    for (const auto& [of, linear] : kNets) {
      if (of != role) continue;
      AdapterPlaces places = Whole(*linear);
      places.reordered = true;
      return places;
    }
    const std::pair<Role, Linear*> kOthers[] = {
        {Role::kO, &w_.o},
        {Role::kCrossO, &w_.o},
        {Role::kDown, &w_.mlp.down},
        {Role::kRouter, &w_.router},
        {Role::kSharedDown, &w_.shared_expert.down},
        {Role::kSharedExpertGate, &w_.shared_expert_gate},
        {Role::kShortConvIn, &w_.short_conv.in},
        {Role::kShortConvOut, &w_.short_conv.out},
        {Role::kMambaIn, &w_.mamba2.in},
        {Role::kMambaOut, &w_.mamba2.out},
        {Role::kQDown, &w_.latent.q_down},
        {Role::kKvDown, &w_.latent.kv_down},
        {Role::kInputGate, &w_.input.gate},
        {Role::kInputUp, &w_.input.up},
        {Role::kHead, &model_.weights.head},
        {Role::kLayerProjection, &model_.weights.layer_projection}};
    for (const auto& [of, linear] : kOthers) {
      if (of == role) return Whole(*linear);
    }
    return {};
  }

  LoadedModel& model_;
  const ModelConfig& config_;
  const int layer_;
  LayerWeights& w_;
};

std::int64_t RowsOf(const AdapterPlaces& places) {
  std::int64_t n = 0;
  for (const AdapterPlace& place : places.places) n += place.n;
  return n;
}

// Why a layer that the model has cannot have an adapter.
const char* ReasonOf(Role role) {
  switch (role) {
    case Role::kTokenEmbedding:
    case Role::kPositionEmbedding:
    case Role::kLayerEmbedding:
      return "changes the embedding, which is not supported";
    case Role::kExpertGate:
    case Role::kExpertUp:
    case Role::kExpertGateUp:
    case Role::kExpertDown:
      return "changes experts, which is not supported";
    case Role::kKvUp:
    case Role::kKeyHeads:
    case Role::kValueHeads:
      return "changes what latent attention makes keys and values of, which "
             "is not supported";
    default:
      return "changes what is no linear layer of this model";
  }
}

}  // namespace

Result<AdapterPlaces> PlacesOf(std::string_view name, std::int64_t n_rows,
                               AdapterForm form, const Family& family,
                               LoadedModel& model) {
  const NameScheme& scheme =
      form == AdapterForm::kGguf ? family.gguf_names : family.hf_names;
  const std::string what = "the adapter of " + Quoted(name);
  const char* reason = nullptr;
  std::int64_t n_wanted = 0;
  for (const std::string& alone : NamesAlone(name, form, scheme)) {
    const ParsedName parsed = Parse(alone);
    for (std::size_t r = 0; r < kRoleCount; ++r) {
      std::string_view stem = scheme[r];
      if (stem.ends_with('#')) stem.remove_suffix(1);
      if (stem.empty() || stem != parsed.stem) continue;
      const auto role = static_cast<Role>(r);
      const int layer = std::max(parsed.layer, 0);
      if (layer >= model.config.n_layers) {
        return {Code::kIncompatible,
                what + " is of a layer that the model does not have: it has " +
                    std::to_string(model.config.n_layers) +
                    "; give the model that the adapter was made for"};
      }
      AdapterPlaces places = Finder(model, layer).Of(role);
      if (places.places.empty()) {
        reason = ReasonOf(role);
        continue;
      }
      n_wanted = RowsOf(places);
      if (n_wanted == n_rows) return places;
    }
  }
  if (n_wanted > 0) {
    return {Code::kIncompatible, what + " gives " + std::to_string(n_rows) +
                                     " outputs, the model's layer has " +
                                     std::to_string(n_wanted) +
                                     "; give the model that the adapter was "
                                     "made for"};
  }
  if (reason == nullptr && name.find("expert") != std::string_view::npos) {
    reason = ReasonOf(Role::kExpertUp);
  }
  return {Code::kUnsupported,
          what + " " +
              (reason != nullptr ? reason
                                 : "is of a layer that this model does not "
                                   "have") +
              "; " + kMergeIt};
}

}  // namespace hearth
