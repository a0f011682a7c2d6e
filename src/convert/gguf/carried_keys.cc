#include "convert/gguf/carried_keys.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/json.h"
#include "formats/gguf/gguf.h"

namespace hearth {
namespace {

// Fields of a card with names of their own; others are called as the key is.
constexpr std::pair<std::string_view, std::string_view> kFields[] = {
    {"license", "general.license"},
    {"license_name", "general.license.name"},
    {"license_link", "general.license.link"},
    {"tags", "general.tags"},
    {"language", "general.languages"}};

std::string FieldOf(std::string_view key) {
  for (const auto& [field, name] : kFields) {
    if (name == key) return std::string(field);
  }
  return std::string(key);
}

// Empty when GGUF has no key for the field.
std::string KeyOf(std::string_view field) {
  for (const auto& [name, key] : kFields) {
    if (name == field) return std::string(key);
  }
  return field.starts_with("general.") ? std::string(field) : std::string();
}

// About the container, which is another one now.
bool IsAboutTheFile(std::string_view key) {
  return key == "general.alignment" || key.starts_with("split.");
}

// About the numbers, which are others after a quantisation.
bool IsAboutNumbers(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" ||
         key.starts_with("quantize.");
}

void AddLost(const std::string& what, const std::vector<std::string>& names,
             std::vector<std::string>& notes) {
  if (names.empty()) return;
  std::string list;
  for (const std::string& name : names) {
    list += (list.empty() ? "" : ", ") + name;
  }
  notes.push_back(what + list);
}

// --- Reading a card ----------------------------------------------------------
std::string_view Trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// A plain, quoted or flow value of YAML as JSON; null when it is another kind.
Json ScalarOf(std::string_view text) {
  if (text.empty()) return nullptr;
  const char first = text.front();
  if (first == '\'') {
    const bool closed = text.size() > 1 && text.back() == '\'';
    const std::string_view inner =
        closed ? text.substr(1, text.size() - 2) : std::string_view();
    if (!closed || inner.find('\'') != std::string_view::npos) return nullptr;
    return std::string(inner);
  }
  if (std::string_view("{|>&*!%@`").find(first) != std::string_view::npos) {
    return nullptr;
  }
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_discarded()) return value;
  if (first == '[') {
    // [en, de]: plain words.
    if (text.back() != ']') return nullptr;
    Json list = Json::array();
    std::string_view rest = text.substr(1, text.size() - 2);
    while (!Trimmed(rest).empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      const Json word = ScalarOf(Trimmed(rest.substr(0, comma)));
      if (!word.is_string()) return nullptr;
      list.push_back(word);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return list;
  }
  if (first == '"') return nullptr;
  const std::size_t comment = text.find(" #");
  return std::string(Trimmed(text.substr(0, comment)));
}

// The block between the first two lines of "---": "key: value" and lists. What
// is nested deeper has a null value.
std::vector<std::pair<std::string, Json>> FrontMatter(std::string_view text) {
  std::vector<std::pair<std::string, Json>> fields;
  bool inside = false;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line == "---") {
      if (inside) return fields;
      inside = true;
      continue;
    }
    if (!inside) return {};
    const std::string_view trimmed = Trimmed(line);
    if (trimmed.empty() || trimmed.front() == '#') continue;
    if (trimmed == "-" || trimmed.starts_with("- ")) {
      if (fields.empty()) continue;
      Json& list = fields.back().second;
      const Json item = ScalarOf(Trimmed(trimmed.substr(1)));
      const bool plain =
          item.is_string() &&
          item.get_ref<const std::string&>().find(": ") == std::string::npos;
      if (!list.is_array() || !plain) {
        list = nullptr;
      } else {
        list.push_back(item);
      }
      continue;
    }
    if (line.front() == ' ' || line.front() == '\t') {
      if (!fields.empty()) fields.back().second = nullptr;
      continue;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view value = Trimmed(line.substr(colon + 1));
    fields.emplace_back(Trimmed(line.substr(0, colon)),
                        value.empty() ? Json::array() : ScalarOf(value));
  }
  return {};  // never closed: no front matter
}

// False when GGUF has no such value.
bool ToGguf(const std::string& key, const Json& value,
            std::vector<GgufMetadata>& metadata) {
  const bool list_key = key == "general.tags" || key == "general.languages";
  if (value.is_string() && list_key) {
    metadata.push_back(
        {key, std::vector<std::string>{value.get<std::string>()}});
  } else if (value.is_string()) {
    metadata.push_back({key, value.get<std::string>()});
  } else if (value.is_boolean()) {
    metadata.push_back({key, value.get<bool>()});
  } else if (value.is_number_unsigned() &&
             value.get<std::uint64_t>() <= UINT32_MAX) {
    metadata.push_back({key, value.get<std::uint32_t>()});
  } else if (value.is_number_float()) {
    metadata.push_back({key, value.get<float>()});
  } else if (value.is_array() && !value.empty() &&
             std::all_of(value.begin(), value.end(),
                         [](const Json& v) { return v.is_string(); })) {
    metadata.push_back({key, value.get<std::vector<std::string>>()});
  } else {
    return false;
  }
  return true;
}

Result<void> CarryCard(const std::string& directory,
                       const std::set<std::string_view>& known,
                       std::vector<GgufMetadata>& metadata,
                       std::vector<std::string>& notes) {
  const std::string path = directory + "/README.md";
  const auto text = ReadTextFile(path);
  if (!text.ok()) {
    if (text.error().code == Code::kNotFound) return {};
    return text.error();
  }
  std::vector<std::string> lost;
  std::vector<GgufMetadata> found;
  for (const auto& [field, value] : FrontMatter(*text)) {
    const std::string key = KeyOf(field);
    if (known.contains(key) && key != "general.name") continue;
    if (key.empty() || !ToGguf(key, value, found)) lost.push_back(field);
  }
  for (GgufMetadata& entry : found) metadata.push_back(std::move(entry));
  AddLost(path + ": fields that GGUF has no key for: ", lost, notes);
  return {};
}

void CarrySampling(const SamplingDefaults& s,
                   std::vector<GgufMetadata>& metadata,
                   std::vector<std::string>& notes) {
  const auto add = [&](const char* key, GgufValue value) {
    metadata.push_back(
        {std::string("general.sampling.") + key, std::move(value)});
  };
  const auto number = [&](const char* key, std::optional<double> value) {
    if (value) add(key, static_cast<float>(*value));
  };
  number("temp", s.temperature);
  if (s.top_k) add("top_k", static_cast<std::int32_t>(*s.top_k));
  number("top_p", s.top_p);
  number("min_p", s.min_p);
  number("penalty_repeat", s.repetition_penalty);
  if (!s.suppressed_ids.empty()) {
    notes.push_back(
        "generation_config.json: suppress_tokens has no key in GGUF");
  }
}

}  // namespace

Result<void> CarryKeys(const LoadedModel& model, bool requantised,
                       std::vector<GgufMetadata>& metadata,
                       std::vector<std::string>& notes) {
  std::set<std::string_view> known;
  for (const GgufMetadata& entry : metadata) known.insert(entry.key);
  if (model.gguf == nullptr) {
    if (model.tokenizer_source != TokenizerSource::kDirectory) return {};
    std::vector<GgufMetadata> found;
    HEARTH_TRY(CarryCard(model.path, known, found, notes));
    CarrySampling(model.sampling, found, notes);
    for (GgufMetadata& entry : found) {
      // The name that follows from the shape gives way.
      std::erase_if(metadata,
                    [&](const GgufMetadata& e) { return e.key == entry.key; });
      metadata.push_back(std::move(entry));
    }
    return {};
  }
  std::vector<GgufMetadata> found;
  for (const GgufEntry& entry : model.gguf->entries()) {
    if (known.contains(entry.key) || IsAboutTheFile(entry.key) ||
        (requantised && IsAboutNumbers(entry.key))) {
      continue;
    }
    found.push_back({std::string(entry.key), entry});
  }
  for (GgufMetadata& entry : found) metadata.push_back(std::move(entry));
  return {};
}

namespace {

// A value as JSON; null for kinds that a card cannot hold.
Result<Json> ValueOf(const GgufFile& gguf, const GgufEntry& entry) {
  switch (entry.type) {
    case GgufType::kString: {
      HEARTH_ASSIGN(const auto text, gguf.Text(entry.key));
      return Json(text);
    }
    case GgufType::kBool: {
      HEARTH_ASSIGN(const bool value, gguf.Bool(entry.key, false));
      return Json(value);
    }
    case GgufType::kU32: {
      HEARTH_ASSIGN(const std::int64_t value, gguf.Int(entry.key));
      return Json(static_cast<std::uint32_t>(value));
    }
    case GgufType::kArray: {
      if (entry.element != GgufType::kString) return Json();
      HEARTH_ASSIGN(const auto texts, gguf.TextArray(entry.key));
      return Json(texts);
    }
    default:
      return Json();
  }
}

}  // namespace

Result<std::string> ModelCardOf(const GgufFile& gguf,
                                std::vector<std::string>& notes) {
  std::string card;
  std::vector<std::string> lost;
  for (const GgufEntry& entry : gguf.entries()) {
    const std::string_view key = entry.key;
    // Said elsewhere in the directory, or about the file.
    if (!key.starts_with("general.") || key == "general.architecture" ||
        key.starts_with("general.sampling.") || IsAboutTheFile(key) ||
        IsAboutNumbers(key)) {
      continue;
    }
    HEARTH_ASSIGN(const Json value, ValueOf(gguf, entry));
    if (value.is_null()) {
      lost.emplace_back(key);
      continue;
    }
    card += FieldOf(key) + ": " +
            value.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }
  AddLost(gguf.label() + ": keys that a model card cannot hold: ", lost, notes);
  if (card.empty()) return card;
  return "---\n" + card + "---\n";
}

}  // namespace hearth
