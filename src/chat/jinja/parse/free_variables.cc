#include "chat/jinja/parse/free_variables.h"

#include <algorithm>
#include <unordered_map>

#include "chat/jinja/run/builtins.h"

namespace hearth::jinja {
namespace {

// Walks the tree in the order of execution and keeps the set of names that are
// surely set. A log of what was added undoes a scope, so that the walk takes
// time in proportion to the template.
class Walker {
 public:
  explicit Walker(const Program& program)
      : program_(program),
        known_(program.symbols.size(), false),
        free_(program.symbols.size(), false) {}

  std::vector<bool> Run() {
    Walk(program_.body);
    return std::move(free_);
  }

 private:
  void Walk(const Body& body) {
    for (const StmtPtr& stmt : body) Walk(*stmt);
  }

  void Walk(const Stmt& stmt) {
    switch (stmt.kind) {
      case StmtKind::kText:
      case StmtKind::kBreak:
      case StmtKind::kContinue:
        return;
      case StmtKind::kPrint:
        return Read(stmt.value);
      case StmtKind::kIf:
        return WalkIf(stmt);
      case StmtKind::kFor:
        return WalkFor(stmt);
      case StmtKind::kSet:
        Read(stmt.value);
        return Store(stmt.target);
      case StmtKind::kSetBlock:
        WalkScope(stmt.body);
        Read(stmt.value);
        return Store(stmt.target);
      case StmtKind::kMacro:
        Add(stmt.symbol);
        return WalkMacro(*stmt.macro);
      case StmtKind::kCall:
        Read(stmt.value);
        return WalkMacro(*stmt.macro);
      case StmtKind::kFilter:
      case StmtKind::kScope:
        WalkScope(stmt.body);
        return Read(stmt.value);
      case StmtKind::kWith: {
        for (const auto& [target, value] : stmt.pairs) Read(value);
        const std::size_t mark = log_.size();
        for (const auto& [target, value] : stmt.pairs) Store(target);
        Walk(stmt.body);
        return Undo(mark);
      }
    }
  }

  void WalkScope(const Body& body) {
    const std::size_t mark = log_.size();
    Walk(body);
    Undo(mark);
  }

  void WalkIf(const Stmt& stmt) {
    // How many of the branches set each name.
    std::unordered_map<int, std::size_t> counts;
    const auto branch = [&](const Body& body) {
      const std::size_t mark = log_.size();
      Walk(body);
      for (std::size_t i = mark; i < log_.size(); ++i) ++counts[log_[i]];
      Undo(mark);
    };
    for (const auto& [condition, body] : stmt.branches) {
      Read(condition);
      branch(body);
    }
    branch(stmt.otherwise);
    for (const auto& [name, count] : counts) {
      if (count == stmt.branches.size() + 1) Add(name);
    }
  }

  void WalkFor(const Stmt& stmt) {
    Read(stmt.value);
    const std::size_t mark = log_.size();
    Store(stmt.target);
    Read(stmt.condition);
    Add(program_.loop);
    Walk(stmt.body);
    Undo(mark);
    WalkScope(stmt.otherwise);
  }

  void WalkMacro(const MacroNode& macro) {
    const std::size_t mark = log_.size();
    for (const int parameter : macro.parameters) Add(parameter);
    for (const int name :
         {program_.caller, program_.varargs, program_.kwargs}) {
      Add(name);
    }
    for (const ExprPtr& value : macro.defaults) Read(value);
    Walk(macro.body);
    Undo(mark);
  }

  void Store(const Target& target) {
    if (target.symbol >= 0 && target.attribute.empty()) Add(target.symbol);
    for (const Target& part : target.parts) Store(part);
  }

  void Add(int name) {
    if (known_[static_cast<std::size_t>(name)]) return;
    known_[static_cast<std::size_t>(name)] = true;
    log_.push_back(name);
  }

  void Undo(std::size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) {
      known_[static_cast<std::size_t>(log_.back())] = false;
    }
  }

  void Read(const ExprPtr& expr) {
    if (!expr) return;
    if (expr->kind == ExprKind::kName &&
        !known_[static_cast<std::size_t>(expr->symbol)]) {
      free_[static_cast<std::size_t>(expr->symbol)] = true;
    }
    Read(expr->target);
    for (const ExprPtr& arg : expr->args) Read(arg);
    for (const auto& [name, arg] : expr->named) Read(arg);
    Read(expr->star);
    Read(expr->star_star);
  }

  const Program& program_;
  std::vector<bool> known_;
  std::vector<bool> free_;
  std::vector<int> log_;  // the names in known_, in the order they came
};

}  // namespace

std::vector<std::string> FreeVariables(const Program& program) {
  const std::vector<bool> is_free = Walker(program).Run();
  std::vector<std::string> names;
  for (std::size_t i = 0; i < is_free.size(); ++i) {
    const std::string& name = program.symbols[i];
    if (is_free[i] && FindGlobal(name).IsUndefined()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace hearth::jinja
