#include "formats/adapter/apply_adapters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/hash.h"
#include "formats/adapter/adapter_places.h"
#include "formats/describe.h"

namespace hearth {
namespace {

constexpr std::size_t kAdaptersMax = 64;

// Two rows order the pairs of rotating numbers in two ways: (2i, 2i + 1), or
// (i, i + half). The row of the one order that is row `row` of the other.
std::int64_t OtherOrder(std::int64_t row, std::int64_t head_dim,
                        std::int64_t rotary_dim, bool to_pairs) {
  const std::int64_t at = row % head_dim, half = rotary_dim / 2;
  if (at >= rotary_dim) return row;
  const std::int64_t from =
      to_pairs ? at / 2 + (at % 2) * half : at % half * 2 + at / half;
  return row - at + from;
}

WeightMatrix MatrixAt(const AdapterMatrix& m, const std::byte* data,
                      std::int64_t n_out) {
  return {.dtype = m.dtype,
          .layout = WeightLayout::kOutIn,
          .n_out = n_out,
          .n_in = m.n_in,
          .data = data};
}

Digest ContentOf(const AdapterFile& file) {
  Sha256 sha;
  sha.Field("hearth adapter 1")
      .Field(static_cast<std::uint64_t>(file.form))
      .Field(std::uint64_t{file.pairs.size()});
  for (const AdapterPair& pair : file.pairs) {
    sha.Field(pair.name).Field(std::bit_cast<std::uint64_t>(pair.factor));
    for (const AdapterMatrix* m : {&pair.down, &pair.up}) {
      const Checksum128Value sum = Checksum128(m->bytes);
      sha.Field(InfoOf(m->dtype).name)
          .Field(static_cast<std::uint64_t>(m->n_out))
          .Field(static_cast<std::uint64_t>(m->n_in))
          .Field(sum.low)
          .Field(sum.high);
    }
  }
  return sha.Finish();
}

// The form of a model that can have adapters; nothing: it can have none.
std::optional<AdapterForm> FormOf(const LoadedModel& model) {
  if (model.file_format.starts_with("GGUF")) return AdapterForm::kGguf;
  if (model.file_format == "safetensors") return AdapterForm::kHuggingFace;
  return std::nullopt;
}

// Puts one adapter's matrices beside a model's.
class Applier {
 public:
  Applier(const AdapterFile& file, const Family& family, AdapterForm form,
          LoadedModel& model, AppliedAdapter& applied)
      : file_(file),
        family_(family),
        form_(form),
        model_(model),
        applied_(applied),
        number_(static_cast<int>(model.adapters.size())) {
    const bool pairs = file.form == AdapterForm::kGguf ? family.gguf_interleaved
                                                       : family.hf_interleaved;
    turns_ = pairs != model.config.rope.interleaved;
  }

  Result<void> Run() {
    if (file_.form != form_ && family_.gguf_folded_scales) {
      return Refuse(Code::kUnsupported,
                    "models of this family have other numbers in GGUF than in "
                    "their first form; get the adapter in the model's form");
    }
    for (const AdapterPair& pair : file_.pairs) HEARTH_TRY(Add(pair));
    return {};
  }

 private:
  Error Refuse(Code code, const std::string& what) const {
    return {code, file_.path + ": " + what};
  }

  Result<void> Add(const AdapterPair& pair) {
    Result<AdapterPlaces> found =
        PlacesOf(pair.name, pair.up.n_out, file_.form, family_, model_);
    if (!found.ok()) {
      return Refuse(found.error().code, found.error().message);
    }
    const AdapterPlaces& at = *found;
    const bool reorders = turns_ && at.head_dim > 0;
    if (at.reordered && (reorders || Reordered(at))) {
      return Refuse(Code::kUnsupported,
                    "the adapter of " + Quoted(pair.name) +
                        " has its rows in another order than the model's file, "
                        "and there is no code to change it; get the adapter in "
                        "the model's form");
    }
    const double factor = double{applied_.scale} * pair.factor;
    const auto narrow = static_cast<float>(factor);
    if (!std::isfinite(narrow)) {
      return Refuse(Code::kInvalidArgument,
                    "the scale of " + Quoted(pair.name) + " is no number");
    }
    const std::byte* rows = pair.up.bytes.data();
    if (reorders) rows = Reorder(pair.up, at);
    for (const AdapterPlace& place : at.places) {
      if (place.linear->w.n_in != pair.down.n_in) {
        return Refuse(Code::kIncompatible,
                      "the adapter of " + Quoted(pair.name) + " reads " +
                          std::to_string(pair.down.n_in) +
                          " numbers, the model's layer " +
                          std::to_string(place.linear->w.n_in) +
                          "; give the model that the adapter was made for");
      }
      const auto first = static_cast<std::uint64_t>(place.first * pair.up.n_in);
      HEARTH_TRY(CheckAlone(pair, place));
      place.linear->low_ranks.push_back(
          {.down = MatrixAt(pair.down, pair.down.bytes.data(), pair.down.n_out),
           .up = MatrixAt(pair.up, rows + *BytesOf(pair.up.dtype, first),
                          place.n),
           .factor = narrow,
           .first_row = place.first_row,
           .adapter = number_});
    }
    ++applied_.n_matrices;
    return {};
  }

  // Whether rows whose order depends on more than their heads' turning have
  // another one in the adapter.
  bool Reordered(const AdapterPlaces& at) const {
    if (at.head_dim > 0) return false;
    return file_.form != form_ && (turns_ || model_.config.delta_net.tiled ||
                                   family_.gguf_tiled_delta_net);
  }

  // One adapter changes an output once: two names may stand for one layer.
  Result<void> CheckAlone(const AdapterPair& pair,
                          const AdapterPlace& place) const {
    for (const LowRank& other : place.linear->low_ranks) {
      if (other.adapter == number_ &&
          place.first_row < other.first_row + other.up.n_out &&
          other.first_row < place.first_row + place.n) {
        return Refuse(Code::kCorrupt, "the layer of " + Quoted(pair.name) +
                                          " is changed twice");
      }
    }
    return {};
  }

  // The rows in the order that the model's own have.
  const std::byte* Reorder(const AdapterMatrix& up, const AdapterPlaces& at) {
    const std::size_t row_bytes =
        up.bytes.size() / static_cast<std::size_t>(up.n_out);
    auto copy = std::make_unique<std::byte[]>(up.bytes.size());
    for (std::int64_t r = 0; r < up.n_out; ++r) {
      const std::int64_t from = OtherOrder(r, at.head_dim, at.rotary_dim,
                                           model_.config.rope.interleaved);
      std::memcpy(copy.get() + static_cast<std::size_t>(r) * row_bytes,
                  up.bytes.data() + static_cast<std::size_t>(from) * row_bytes,
                  row_bytes);
    }
    applied_.made.push_back(std::move(copy));
    return applied_.made.back().get();
  }

  const AdapterFile& file_;
  const Family& family_;
  const AdapterForm form_;
  LoadedModel& model_;
  AppliedAdapter& applied_;
  const int number_;
  bool turns_ = false;  // the two order rotating rows in two ways
};

Result<void> CheckScales(const std::vector<AdapterToApply>& adapters) {
  if (adapters.size() > kAdaptersMax) {
    return {Code::kInvalidArgument, "more than " +
                                        std::to_string(kAdaptersMax) +
                                        " adapters; merge some of them"};
  }
  for (const auto& [file, scale] : adapters) {
    if (!std::isfinite(scale) || scale == 0) {
      return {Code::kInvalidArgument,
              file.path +
                  ": a scale of 0, or one that is no number, says nothing of "
                  "an adapter; leave it out"};
    }
  }
  return {};
}

// GGUF's name of the family in whose form its files are.
std::string_view ArchitectureOf(const Family& family) {
  const Family* form = family.gguf_architecture.empty()
                           ? FamilyNamed(family.gguf_form)
                           : &family;
  return form == nullptr ? std::string_view() : form->gguf_architecture;
}

}  // namespace

Result<void> ApplyAdapters(std::vector<AdapterToApply> adapters,
                           LoadedModel& model) {
  if (adapters.empty()) return {};
  HEARTH_TRY(CheckScales(adapters));
  const std::optional<AdapterForm> form = FormOf(model);
  const Family* family = FamilyNamed(model.config.architecture);
  if (!form.has_value() || family == nullptr) {
    return {Code::kUnsupported,
            model.path + ": a model in the format " + model.file_format +
                " has no adapters; give a GGUF model or a Hugging Face "
                "directory"};
  }
  // GGUF files of families that have another's form there.
  const Family* in_gguf = family->gguf_architecture.empty()
                              ? FamilyNamed(family->gguf_form)
                              : family;
  std::vector<std::pair<Digest, AdapterToApply*>> ordered;
  for (AdapterToApply& adapter : adapters) {
    ordered.emplace_back(ContentOf(adapter.file), &adapter);
  }
  std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
    return a.first.bytes < b.first.bytes;
  });
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    auto& [content, adapter] = ordered[i];
    AdapterFile& file = adapter->file;
    if (i > 0 && ordered[i - 1].first == content) {
      return {Code::kInvalidArgument,
              file.path +
                  ": this adapter is given twice; give it once, with the sum "
                  "of the scales"};
    }
    if (!file.architecture.empty() &&
        file.architecture != ArchitectureOf(*family)) {
      return {Code::kIncompatible,
              file.path + ": an adapter of a model of architecture " +
                  Quoted(file.architecture) + ", the model is " +
                  Quoted(ArchitectureOf(*family)) +
                  "; give the model that the adapter was made for"};
    }
    AppliedAdapter applied;
    applied.path = file.path;
    applied.scale = adapter->scale;
    applied.content = content;
    const Family& names = file.form == AdapterForm::kGguf && in_gguf != nullptr
                              ? *in_gguf
                              : *family;
    HEARTH_TRY(Applier(file, names, *form, model, applied).Run());
    applied.files = std::move(file.files);
    model.adapters.push_back(std::move(applied));
  }
  return {};
}

}  // namespace hearth
