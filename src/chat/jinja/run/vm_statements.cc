#include <algorithm>

#include "chat/jinja/run/builtins.h"
#include "chat/jinja/run/operators.h"
#include "chat/jinja/run/vm.h"
#include "chat/jinja/run/vm_guards.h"

namespace hearth::jinja {

using Kind = Value::Kind;

void Scope::Set(int symbol, Value value) {
  for (auto& [name, old] : variables) {
    if (name == symbol) {
      old = std::move(value);
      return;
    }
  }
  variables.emplace_back(symbol, std::move(value));
}

const Value* Scope::Find(int symbol) const {
  for (const Scope* scope = this; scope != nullptr;
       scope = scope->parent.get()) {
    for (const auto& [name, value] : scope->variables) {
      if (name == symbol) return &value;
    }
  }
  return nullptr;
}

Vm::Vm(const Program& program, const ChatTemplateLimits& limits,
       std::chrono::local_seconds now)
    : program_(program), budget_(limits), now_(now) {
  globals_.reserve(program.symbols.size());
  for (const std::string& name : program.symbols) {
    Value global = FindGlobal(name);
    globals_.push_back(global.IsUndefined()
                           ? Value::Undefined("'" + name + "' is undefined")
                           : std::move(global));
  }
}

Vm::~Vm() {
  // Every namespace and captured scope is still held by its list while its
  // contents go, so no chain of them is destroyed recursively.
  for (const auto& ns : namespaces_) {
    const auto contents = std::move(ns->attributes);
    ns->attributes.clear();
  }
  for (const auto& scope : captured_) {
    const auto contents = std::move(scope->variables);
    scope->variables.clear();
  }
}

Error Vm::Locate(Error error, int line) {
  if (!located_) {
    located_ = true;
    error.message =
        program_.name + ":" + std::to_string(line) + ": " + error.message;
  }
  return error;
}

Result<std::string> Vm::Run(
    std::vector<std::pair<std::string, Value>> variables) {
  scope_ = std::make_shared<Scope>();
  for (auto& [name, value] : variables) {
    const auto it =
        std::find(program_.symbols.begin(), program_.symbols.end(), name);
    if (it == program_.symbols.end()) continue;  // never read
    scope_->Set(static_cast<int>(it - program_.symbols.begin()),
                std::move(value));
  }
  HEARTH_TRY(ExecBody(program_.body));
  return std::move(out_);
}

std::shared_ptr<Scope> Vm::NewScope(
    const std::shared_ptr<Scope>& parent) const {
  auto scope = std::make_shared<Scope>();
  scope->parent = parent;
  return scope;
}

Result<void> Vm::Print(std::string_view text) {
  HEARTH_TRY(budget_.Touch(text.size()));
  printed_ += text.size();
  if (printed_ > budget_.limits().output_bytes_max) {
    return {Code::kResourceFull,
            "the output grows beyond " +
                std::to_string(budget_.limits().output_bytes_max) + " bytes"};
  }
  out_ += text;
  return {};
}

Result<Vm::Flow> Vm::ExecBody(const Body& body) {
  for (const StmtPtr& stmt : body) {
    HEARTH_ASSIGN(const Flow flow, Exec(*stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Vm::Flow> Vm::Exec(const Stmt& stmt) {
  Result<void> paid = budget_.Step();
  if (!paid.ok()) return Locate(paid.error(), stmt.line);
  if (depth_ >= budget_.limits().depth_max) {
    return Locate({Code::kResourceFull, "the template recurses too deep"},
                  stmt.line);
  }
  ++depth_;
  Result<Flow> flow = ExecKind(stmt);
  --depth_;
  if (!flow.ok()) return Locate(flow.error(), stmt.line);
  return flow;
}

Result<Vm::Flow> Vm::ExecKind(const Stmt& stmt) {
  switch (stmt.kind) {
    case StmtKind::kText:
      HEARTH_TRY(Print(stmt.text));
      break;
    case StmtKind::kPrint:
      HEARTH_TRY(ExecPrint(*stmt.value));
      break;
    case StmtKind::kIf:
      return ExecIf(stmt);
    case StmtKind::kFor: {
      HEARTH_ASSIGN(const Value iterable, Eval(*stmt.value));
      HEARTH_TRY(RunLoop(stmt, iterable, 0));
      break;
    }
    case StmtKind::kSet: {
      HEARTH_ASSIGN(const Value value, Eval(*stmt.value));
      HEARTH_TRY(Assign(stmt.target, value));
      break;
    }
    case StmtKind::kSetBlock:
      HEARTH_TRY(ExecSetBlock(stmt));
      break;
    case StmtKind::kMacro:
      HEARTH_TRY(ExecMacro(stmt));
      break;
    case StmtKind::kCall:
      HEARTH_TRY(ExecCall(stmt));
      break;
    case StmtKind::kFilter:
      HEARTH_TRY(ExecFilter(stmt));
      break;
    case StmtKind::kWith:
      return ExecWith(stmt);
    case StmtKind::kScope:
      return ExecScoped(stmt.body);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Result<void> Vm::ExecPrint(const Expr& expr) {
  HEARTH_ASSIGN(const Value value, Eval(expr));
  if (value.IsString()) return Print(value.text());
  HEARTH_ASSIGN(const std::string text, ToText(*this, value));
  return Print(text);
}

Result<Vm::Flow> Vm::ExecIf(const Stmt& stmt) {
  for (const auto& [condition, body] : stmt.branches) {
    HEARTH_ASSIGN(const Value value, Eval(*condition));
    if (Truthy(value)) return ExecBody(body);
  }
  return ExecBody(stmt.otherwise);
}

Result<Vm::Flow> Vm::ExecScoped(const Body& body) {
  const ScopeGuard guard(this, NewScope(scope_));
  return ExecBody(body);
}

Result<Vm::Flow> Vm::ExecWith(const Stmt& stmt) {
  // The values do not see each other.
  std::vector<Value> values;
  for (const auto& [target, expr] : stmt.pairs) {
    HEARTH_ASSIGN(Value value, Eval(*expr));
    values.push_back(std::move(value));
  }
  const ScopeGuard guard(this, NewScope(scope_));
  for (std::size_t i = 0; i < values.size(); ++i) {
    HEARTH_TRY(Assign(stmt.pairs[i].first, values[i]));
  }
  return ExecBody(stmt.body);
}

Result<Value> Vm::Capture(const Body& body) {
  CaptureGuard capture(this, scope_);
  HEARTH_TRY(ExecScoped(body));
  return capture.Take();
}

Result<void> Vm::ExecSetBlock(const Stmt& stmt) {
  HEARTH_ASSIGN(Value value, Capture(stmt.body));
  if (stmt.value) {
    const Value saved = std::exchange(block_input_, value);
    Result<Value> filtered = Eval(*stmt.value);
    block_input_ = saved;
    if (!filtered.ok()) return filtered.error();
    value = std::move(filtered).value();
  }
  return Assign(stmt.target, value);
}

Result<void> Vm::ExecFilter(const Stmt& stmt) {
  HEARTH_ASSIGN(Value text, Capture(stmt.body));
  const Value saved = std::exchange(block_input_, std::move(text));
  Result<Value> filtered = Eval(*stmt.value);
  block_input_ = saved;
  if (!filtered.ok()) return filtered.error();
  HEARTH_ASSIGN(const std::string printed, ToText(*this, *filtered));
  return Print(printed);
}

Value Vm::MakeMacro(const MacroNode& node) {
  auto macro = std::make_shared<MacroObject>();
  macro->name = node.name;
  macro->node = &node;
  macro->scope = scope_;
  for (std::shared_ptr<Scope> scope = scope_; scope && !scope->captured;
       scope = scope->parent) {
    scope->captured = true;
    captured_.push_back(scope);
  }
  return Value::Of(Kind::kFunction, std::move(macro));
}

Result<void> Vm::ExecMacro(const Stmt& stmt) {
  HEARTH_TRY(budget_.BuildItems(4));
  scope_->Set(stmt.symbol, MakeMacro(*stmt.macro));
  return {};
}

Result<void> Vm::ExecCall(const Stmt& stmt) {
  HEARTH_TRY(budget_.BuildItems(4));
  const Value caller = MakeMacro(*stmt.macro);
  HEARTH_ASSIGN(const Value result, EvalCall(*stmt.value, &caller));
  HEARTH_ASSIGN(const std::string text, ToText(*this, result));
  return Print(text);
}

Result<void> Vm::Assign(const Target& target, const Value& value) {
  if (!target.attribute.empty()) {
    const Value* holder = scope_->Find(target.symbol);
    if (holder == nullptr || !holder->Is(Kind::kNamespace)) {
      return TypeError("cannot assign attribute '" + target.attribute +
                       "' of something that is not a namespace");
    }
    auto& attributes = holder->as<NamespaceObject>().attributes;
    for (auto& [name, old] : attributes) {
      if (name == target.attribute) {
        // `value` may live in what `old` holds.
        const Value dropped = std::exchange(old, Value(value));
        return {};
      }
    }
    attributes.emplace_back(target.attribute, value);
    return {};
  }
  if (target.symbol >= 0) {
    scope_->Set(target.symbol, value);
    return {};
  }
  HEARTH_ASSIGN(const std::vector<Value> items, Iterate(value));
  if (items.size() != target.parts.size()) {
    return TypeError("cannot unpack " + std::to_string(items.size()) +
                     " values into " + std::to_string(target.parts.size()) +
                     " names");
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    HEARTH_TRY(Assign(target.parts[i], items[i]));
  }
  return {};
}

Result<bool> Vm::LoopHasNext(LoopObject* loop) {
  while (loop->taken.size() <= loop->index) {
    if (loop->outer == nullptr || loop->source_next >= loop->source.size()) {
      return false;
    }
    HEARTH_TRY(budget_.Step());
    const Value item = loop->source[loop->source_next++];
    const Stmt& stmt = *loop->statement;
    if (stmt.condition) {
      const ScopeGuard guard(this, NewScope(loop->outer));
      HEARTH_TRY(Assign(stmt.target, item));
      HEARTH_ASSIGN(const Value passes, Eval(*stmt.condition));
      if (!Truthy(passes)) continue;
    }
    loop->taken.push_back(item);
  }
  return true;
}

Result<void> Vm::LoopTakeAll(LoopObject* loop) {
  const std::size_t index = loop->index;
  while (true) {
    loop->index = loop->taken.size();
    Result<bool> more = LoopHasNext(loop);
    if (!more.ok() || !more.value()) {
      loop->index = index;
      if (!more.ok()) return more.error();
      return {};
    }
  }
}

Result<void> Vm::RunLoop(const Stmt& stmt, const Value& iterable, int depth0) {
  auto loop = std::make_shared<LoopObject>();
  loop->statement = &stmt;
  loop->depth0 = depth0;
  HEARTH_ASSIGN(loop->source, Iterate(iterable));
  HEARTH_TRY(budget_.BuildItems(loop->source.size()));
  loop->outer = scope_;
  Result<void> result = LoopBody(stmt, loop);
  // The loop may be remembered in a namespace; what it held may not.
  loop->outer.reset();
  loop->source.clear();
  loop->taken.clear();
  loop->changed_value = Value();
  return result;
}

Result<void> Vm::LoopBody(const Stmt& stmt,
                          const std::shared_ptr<LoopObject>& loop) {
  const std::shared_ptr<Scope> outer = loop->outer;
  const Value loop_value = Value::Of(Kind::kLoop, loop);
  std::size_t count = 0;
  while (true) {
    loop->index = count;
    HEARTH_ASSIGN(const bool has_item, LoopHasNext(loop.get()));
    if (!has_item) break;
    ++count;
    const ScopeGuard guard(this, NewScope(outer));
    scope_->Set(program_.loop, loop_value);
    const Value item = loop->taken[loop->index];
    HEARTH_TRY(Assign(stmt.target, item));
    HEARTH_ASSIGN(const Flow flow, ExecBody(stmt.body));
    if (flow == Flow::kBreak) break;
  }
  if (count == 0) {
    HEARTH_TRY(ExecScoped(stmt.otherwise));
  }
  return {};
}

}  // namespace hearth::jinja
