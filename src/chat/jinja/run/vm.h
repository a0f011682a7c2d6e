// Runs a syntax tree.
//
// One Vm renders once, on one thread. Statements are in vm_statements.cc,
// expressions in vm_expressions.cc, calls and attributes in vm_calls.cc.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja/budget.h"
#include "chat/jinja/parse/ast.h"
#include "chat/jinja/value/value.h"
#include "hearth/result.h"

namespace hearth::jinja {

// The variables of a block. A lookup goes on in `parent`; an assignment stays
// here.
struct Scope {
  std::vector<std::pair<int, Value>> variables;
  std::shared_ptr<Scope> parent;
  bool captured = false;  // a macro keeps it

  void Set(int symbol, Value value);
  const Value* Find(int symbol) const;
};

struct MacroObject : FunctionObject {
  const MacroNode* node = nullptr;
  std::shared_ptr<Scope> scope;
};

// `loop`, while its loop runs. Items are taken from `source` one by one,
// because the condition of the loop may depend on what the body did.
struct LoopObject : Object {
  const Stmt* statement = nullptr;
  std::shared_ptr<Scope> outer;  // null once the loop is over
  std::vector<Value> source;
  std::size_t source_next = 0;
  std::vector<Value> taken;  // passed the condition
  std::size_t index = 0;     // of the current item in `taken`
  int depth0 = 0;
  bool has_changed_value = false;
  Value changed_value;
};

class Vm {
 public:
  Vm(const Program& program, const ChatTemplateLimits& limits,
     std::chrono::local_seconds now);
  ~Vm();
  Vm(const Vm&) = delete;
  Vm& operator=(const Vm&) = delete;

  // Errors start with "NAME:LINE: ".
  Result<std::string> Run(std::vector<std::pair<std::string, Value>> variables);

  // For filters, tests, methods and functions.
  Budget& budget() { return budget_; }
  std::chrono::local_seconds now() const { return now_; }
  Result<Value> GetAttribute(const Value& object, const std::string& name);
  Result<Value> GetItem(const Value& object, const Value& key);
  Result<Value> Call(const Value& callee, const Args& args);
  Result<Value> ApplyFilter(const std::string& name, const Value& input,
                            const Args& args);
  Result<bool> ApplyTest(const std::string& name, const Value& input,
                         const Args& args);
  // The elements of anything iterable; a generator is empty afterwards.
  Result<std::vector<Value>> Iterate(const Value& value);
  // A generator over `items`.
  static Value Generator(std::vector<Value> items);
  Value NewNamespace();
  // Makes sure that loop->taken holds the item behind the current one.
  Result<bool> LoopHasNext(LoopObject* loop);
  // Takes all that the loop has left.
  Result<void> LoopTakeAll(LoopObject* loop);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  class ScopeGuard;  // vm_guards.h
  class CaptureGuard;

  // Statements.
  Result<Flow> ExecBody(const Body& body);
  Result<Flow> Exec(const Stmt& stmt);
  Result<Flow> ExecKind(const Stmt& stmt);
  Result<Flow> ExecIf(const Stmt& stmt);
  Result<Flow> ExecScoped(const Body& body);
  Result<Flow> ExecWith(const Stmt& stmt);
  Result<void> ExecPrint(const Expr& expr);
  Result<void> ExecSetBlock(const Stmt& stmt);
  Result<void> ExecFilter(const Stmt& stmt);
  Result<void> ExecMacro(const Stmt& stmt);
  Result<void> ExecCall(const Stmt& stmt);
  Result<void> RunLoop(const Stmt& stmt, const Value& iterable, int depth0);
  Result<void> LoopBody(const Stmt& stmt,
                        const std::shared_ptr<LoopObject>& loop);
  Result<void> Assign(const Target& target, const Value& value);
  // What `body` prints, in a scope of its own.
  Result<Value> Capture(const Body& body);
  Result<void> Print(std::string_view text);
  Value MakeMacro(const MacroNode& node);
  std::shared_ptr<Scope> NewScope(const std::shared_ptr<Scope>& parent) const;

  // Expressions.
  Result<Value> Eval(const Expr& expr);
  Result<Value> EvalKind(const Expr& expr);
  Result<Value> EvalName(const Expr& expr);
  Result<Value> EvalItems(const Expr& expr);
  Result<Value> EvalDict(const Expr& expr);
  Result<Value> EvalAttribute(const Expr& expr);
  Result<Value> EvalItem(const Expr& expr);
  Result<Value> EvalSlice(const Value& object, const Expr& slice);
  Result<Value> EvalCall(const Expr& expr, const Value* caller);
  Result<Value> EvalFilter(const Expr& expr);
  Result<Value> EvalTest(const Expr& expr);
  Result<Value> EvalUnary(const Expr& expr);
  Result<Value> EvalBinary(const Expr& expr);
  Result<Value> EvalLogic(const Expr& expr);
  Result<Value> EvalConcat(const Expr& expr);
  Result<Value> EvalCompare(const Expr& expr);
  Result<Value> EvalConditional(const Expr& expr);
  Result<Args> EvalArgs(const Expr& expr);

  // Calls.
  Result<Value> CallMacro(const MacroObject& macro, const Args& args);
  Result<void> BindMacro(const MacroObject& macro, const Args& args,
                         Scope* scope);
  Result<Value> CallLoop(const Value& loop, const Args& args);
  Result<Value> LoopAttribute(const Value& loop, const std::string& name);

  Error Locate(Error error, int line);

  const Program& program_;
  Budget budget_;
  std::chrono::local_seconds now_;
  std::vector<Value> globals_;  // by symbol; Undefined for unknown names
  std::shared_ptr<Scope> scope_;
  std::string out_;
  std::size_t printed_ = 0;  // bytes of all output, captured or not
  int depth_ = 0;
  bool located_ = false;  // the error on its way has its line
  Value block_input_;     // of the filter block being applied
  // What may take part in a cycle; emptied at the end.
  std::vector<std::shared_ptr<NamespaceObject>> namespaces_;
  std::vector<std::shared_ptr<Scope>> captured_;
};

}  // namespace hearth::jinja
