// Where an adapter's matrices belong in a model: from a layer's name in the
// adapter's file to rows of the model's own matrices.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "formats/adapter/adapter_file.h"
#include "formats/families.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Rows of an adapter's second matrix and where they belong.
struct AdapterPlace {
  Linear* linear;
  std::int64_t first_row;  // of the linear layer's outputs
  std::int64_t first;      // of the adapter's rows
  std::int64_t n;
};

// What the places of one name have in common.
struct AdapterPlaces {
  std::vector<AdapterPlace> places;
  // Rows of queries or keys, of heads of this size, of which these many
  // numbers turn; 0: of neither.
  int head_dim = 0, rotary_dim = 0;
  // Rows that the two file forms may order in different ways for which there
  // is no code.
  bool reordered = false;
};

// The places of `name`, into which as many rows as `n_rows` go. kUnsupported,
// kIncompatible with the cause and the remedy. The result points into `model`.
Result<AdapterPlaces> PlacesOf(std::string_view name, std::int64_t n_rows,
                               AdapterForm form, const Family& family,
                               LoadedModel& model);

}  // namespace hearth
