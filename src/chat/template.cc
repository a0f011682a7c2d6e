#include "chat/template.h"

#include <algorithm>

#include "chat/jinja/parse/free_variables.h"
#include "chat/jinja/parse/lexer.h"
#include "chat/jinja/parse/parser.h"
#include "chat/jinja/run/vm.h"

namespace hearth {

using jinja::Value;

struct ChatTemplate::State {
  std::string source;
  ChatTemplateLimits limits;
  jinja::Program program;
  std::vector<std::string> variables;
};

namespace {

using Variables = std::vector<std::pair<std::string, Value>>;

Error TooDeep(const std::string& what) {
  return {Code::kResourceFull, what + " nests too deep"};
}

// `depth` levels may follow.
Result<Value> ToValue(const OrderedJson& json, int depth,
                      const std::string& what) {
  switch (json.type()) {
    case OrderedJson::value_t::boolean:
      return Value::Bool(json.get<bool>());
    case OrderedJson::value_t::number_integer:
      return Value::Int(json.get<std::int64_t>());
    case OrderedJson::value_t::number_unsigned:
      if (json.get<std::uint64_t>() > static_cast<std::uint64_t>(INT64_MAX)) {
        return Value::BigInt(std::to_string(json.get<std::uint64_t>()));
      }
      return Value::Int(json.get<std::int64_t>());
    case OrderedJson::value_t::binary:
      return Value::BigInt(DigitsOf(json));
    case OrderedJson::value_t::number_float:
      return Value::Float(json.get<double>());
    case OrderedJson::value_t::string:
      return Value::String(json.get_ref<const std::string&>());
    case OrderedJson::value_t::array: {
      if (depth <= 0) return TooDeep(what);
      std::vector<Value> items;
      items.reserve(json.size());
      for (const OrderedJson& item : json) {
        HEARTH_ASSIGN(Value value, ToValue(item, depth - 1, what));
        items.push_back(std::move(value));
      }
      return Value::List(std::move(items));
    }
    case OrderedJson::value_t::object: {
      if (depth <= 0) return TooDeep(what);
      auto dict = std::make_shared<jinja::DictObject>();
      for (const auto& [key, item] : json.items()) {
        HEARTH_ASSIGN(Value value, ToValue(item, depth - 1, what));
        dict->Set(Value::String(key), std::move(value));
      }
      return Value::Of(Value::Kind::kDict, std::move(dict));
    }
    default:
      return Value::None();
  }
}

Result<void> AddVariable(const std::string& name, const OrderedJson& json,
                         const ChatTemplateLimits& limits, Variables* out) {
  HEARTH_ASSIGN(Value value, ToValue(json, limits.value_depth_max, name));
  out->emplace_back(name, std::move(value));
  return {};
}

void AddToken(const char* name, const std::optional<std::string>& token,
              Variables* out) {
  if (token) out->emplace_back(name, Value::String(*token));
}

}  // namespace

Result<ChatTemplate> ChatTemplate::Parse(std::string source, std::string name,
                                         const ChatTemplateLimits& limits) {
  auto state = std::make_shared<State>();
  state->limits = limits;
  HEARTH_ASSIGN(std::vector<jinja::Token> tokens,
                jinja::Tokenize(source, name, limits));
  state->source = std::move(source);
  jinja::Parser parser(std::move(tokens), std::move(name), state->limits);
  HEARTH_ASSIGN(state->program, parser.Run());
  state->variables = jinja::FreeVariables(state->program);
  return ChatTemplate(std::move(state));
}

Result<std::string> ChatTemplate::Render(const OrderedJson& messages,
                                         const OrderedJson* tools,
                                         const RenderOptions& options) const {
  const std::string& name = state_->program.name;
  if (!messages.is_array()) {
    return {Code::kInvalidArgument, name + ": messages must be an array"};
  }
  if (!options.kwargs.is_null() && !options.kwargs.is_object()) {
    return {Code::kInvalidArgument, name + ": kwargs must be an object"};
  }
  Variables variables;
  const ChatTemplateLimits& limits = state_->limits;
  HEARTH_TRY(AddVariable("messages", messages, limits, &variables));
  HEARTH_TRY(AddVariable("tools", tools == nullptr ? OrderedJson() : *tools,
                         limits, &variables));
  variables.emplace_back("documents", Value::None());
  variables.emplace_back("add_generation_prompt",
                         Value::Bool(options.add_generation_prompt));
  AddToken("bos_token", options.bos_token, &variables);
  AddToken("eos_token", options.eos_token, &variables);
  AddToken("unk_token", options.unk_token, &variables);
  for (const auto& [key, value] : options.kwargs.items()) {
    if (key == "messages" || key == "tools") {
      return {Code::kInvalidArgument,
              name + ": kwargs must not contain '" + key + "'"};
    }
    HEARTH_TRY(AddVariable(key, value, limits, &variables));
  }
  return jinja::Vm(state_->program, limits, options.now)
      .Run(std::move(variables));
}

Result<std::string> ChatTemplate::RenderVariables(
    const OrderedJson& variables, const RenderOptions& options) const {
  if (!variables.is_object()) {
    return {Code::kInvalidArgument,
            state_->program.name + ": the variables must be an object"};
  }
  Variables values;
  for (const auto& [key, value] : variables.items()) {
    HEARTH_TRY(AddVariable(key, value, state_->limits, &values));
  }
  return jinja::Vm(state_->program, state_->limits, options.now)
      .Run(std::move(values));
}

const std::vector<std::string>& ChatTemplate::variables() const {
  return state_->variables;
}

bool ChatTemplate::Reads(std::string_view variable) const {
  return std::binary_search(state_->variables.begin(), state_->variables.end(),
                            variable);
}

const std::string& ChatTemplate::source() const { return state_->source; }

}  // namespace hearth
