// The syntax tree of a template. One struct for expressions and one for
// statements; the comment of each kind says which fields it uses.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chat/jinja/value/value.h"

namespace hearth::jinja {

struct Expr;
struct Stmt;
using ExprPtr = std::unique_ptr<Expr>;
using StmtPtr = std::unique_ptr<Stmt>;
using Body = std::vector<StmtPtr>;

// Operators of kUnary, kBinary and kCompare.
enum class Op : std::uint8_t {
  kNot,
  kNegative,
  kPositive,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn,
};

enum class ExprKind : std::uint8_t {
  kConst,      // constant
  kName,       // symbol
  kList,       // args
  kTuple,      // args
  kDict,       // args: key, value, key, value
  kAttribute,  // target.name
  kItem,       // target[args[0]]
  kSlice,      // args: start, stop, step; each may be null
  kCall,       // target(args, named, star, star_star)
  kFilter,     // target|name(args, ...); target null in a filter block
  kTest,       // target is name(args, ...)
  kUnary,      // op args[0]
  kBinary,     // args[0] op args[1]
  kAnd,
  kOr,           // args[0], args[1]
  kConcat,       // args[0] ~ args[1] ~ ...
  kCompare,      // args[0] ops[0] args[1] ops[1] args[2] ...
  kConditional,  // args: then, condition, else; else may be null
};

struct Expr {
  ExprKind kind;
  int line = 0;
  int depth = 1;  // 1 + the deepest part
  Op op = Op::kNot;
  int symbol = -1;
  std::string name;
  Value constant;
  ExprPtr target;
  std::vector<ExprPtr> args;
  std::vector<std::pair<std::string, ExprPtr>> named;
  ExprPtr star;
  ExprPtr star_star;
  std::vector<Op> ops;
};

// What an assignment writes to: a name, an attribute of a namespace, or a
// list of these.
struct Target {
  int symbol = -1;        // of the name, or of the namespace
  std::string attribute;  // empty for a plain name
  std::vector<Target> parts;
};

enum class StmtKind : std::uint8_t {
  kText,      // text
  kPrint,     // value
  kFor,       // target, value, condition (may be null), body, otherwise
  kIf,        // branches, otherwise
  kSet,       // target = value
  kSetBlock,  // target = body, through the filters in value if any
  kMacro,     // symbol, macro
  kCall,      // value is the call; macro is its caller
  kFilter,    // value is the filter chain, body
  kWith,      // pairs, body
  kScope,     // body in a scope of its own: {% generation %}
  kBreak,
  kContinue,
};

// A macro, or the block that a call hands over as `caller`.
struct MacroNode {
  std::string name;
  std::vector<int> parameters;  // symbols
  std::vector<std::string> parameter_names;
  std::vector<ExprPtr> defaults;  // of the last parameters
  Body body;
  bool uses_caller = false;
  bool uses_varargs = false;
  bool uses_kwargs = false;
};

struct Stmt {
  StmtKind kind;
  int line = 0;
  std::string text;
  Target target;
  ExprPtr value;
  ExprPtr condition;
  Body body;
  Body otherwise;
  std::vector<std::pair<ExprPtr, Body>> branches;
  std::vector<std::pair<Target, ExprPtr>> pairs;
  std::unique_ptr<MacroNode> macro;
  int symbol = -1;
  bool recursive = false;
};

// Names are numbers while rendering; `symbols[i]` is the name of number i.
struct Program {
  std::string name;
  std::vector<std::string> symbols;
  Body body;
  // Numbers of the names that the engine itself sets.
  int loop = -1;
  int caller = -1;
  int varargs = -1;
  int kwargs = -1;
};

}  // namespace hearth::jinja
