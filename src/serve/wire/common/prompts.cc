#include "serve/wire/common/prompts.h"

#include <algorithm>
#include <climits>

namespace hearth::serve {
namespace {

bool IsId(const OrderedJson& value) {
  if (!value.is_number_unsigned()) return false;
  return value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT32_MAX);
}

bool AreIds(const OrderedJson& list) {
  return list.is_array() && !list.empty() &&
         std::all_of(list.begin(), list.end(), IsId);
}

std::vector<std::int32_t> Ids(const OrderedJson& list) {
  std::vector<std::int32_t> ids;
  ids.reserve(list.size());
  for (const OrderedJson& id : list) {
    ids.push_back(static_cast<std::int32_t>(id.get<std::uint64_t>()));
  }
  return ids;
}

bool IsText(const OrderedJson& value) { return value.is_string(); }

}  // namespace

void ReadPrompts(ObjectReader& reader, const char* name, WireRequest& request) {
  request.raw = true;
  const OrderedJson* prompt = reader.Find(name);
  if (prompt == nullptr) return reader.Fault(name, "is missing.");
  if (prompt->is_string()) {
    request.prompts = {prompt->get<std::string>()};
    return;
  }
  if (AreIds(*prompt)) {
    request.prompt_ids = {Ids(*prompt)};
    return;
  }
  if (!prompt->is_array() || prompt->empty() || prompt->size() > kPromptsMax) {
    return reader.Fault(name,
                        "must be a text, a list of token ids, or a list "
                        "of 1 to " +
                            std::to_string(kPromptsMax) + " of one of these.");
  }
  if (std::all_of(prompt->begin(), prompt->end(), IsText)) {
    request.prompts = prompt->get<std::vector<std::string>>();
  } else if (std::all_of(prompt->begin(), prompt->end(), AreIds)) {
    for (const OrderedJson& list : *prompt) {
      request.prompt_ids.push_back(Ids(list));
    }
  } else {
    reader.Fault(name, "mixes texts and token ids. Send one of the two.");
  }
}

}  // namespace hearth::serve
