// Expressions. Precedence and the places where filters and tests may stand
// follow the reference grammar: `not a in b` is `not (a in b)`, `-x|abs` is
// `(-x)|abs`, `a ~ b + c` is `(a ~ b) + c`.
#include <algorithm>

#include "chat/jinja/parse/parser.h"

namespace hearth::jinja {
namespace {

Error TooDeep(const std::string& name, int line) {
  return {Code::kResourceFull,
          name + ":" + std::to_string(line) + ": the template nests too deep"};
}

struct NamedOp {
  const char* text;
  Op op;
};

constexpr NamedOp kComparisons[] = {
    {"==", Op::kEqual},     {"!=", Op::kNotEqual}, {"<", Op::kLess},
    {"<=", Op::kLessEqual}, {">", Op::kGreater},   {">=", Op::kGreaterEqual},
};
constexpr NamedOp kProducts[] = {
    {"*", Op::kMultiply},
    {"/", Op::kDivide},
    {"//", Op::kFloorDivide},
    {"%", Op::kModulo},
};

}  // namespace

ExprPtr Parser::Make(ExprKind kind) const {
  auto node = std::make_unique<Expr>();
  node->kind = kind;
  node->line = Current().line;
  return node;
}

Result<ExprPtr> Parser::Finish(ExprPtr node) const {
  int deepest = 0;
  const auto see = [&deepest](const ExprPtr& part) {
    if (part) deepest = std::max(deepest, part->depth);
  };
  see(node->target);
  for (const ExprPtr& arg : node->args) see(arg);
  for (const auto& [name, arg] : node->named) see(arg);
  see(node->star);
  see(node->star_star);
  node->depth = deepest + 1;
  if (node->depth > limits_.nesting_max) {
    return TooDeep(program_.name, node->line);
  }
  return node;
}

Result<ExprPtr> Parser::Binary(ExprKind kind, Op op, int line, ExprPtr left,
                               ExprPtr right) const {
  ExprPtr node = Make(kind);
  node->line = line;
  node->op = op;
  node->args.push_back(std::move(left));
  node->args.push_back(std::move(right));
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseExpression(bool with_conditional) {
  const Nest nest(this);
  if (nest.TooDeep()) return TooDeep(program_.name, Current().line);
  return with_conditional ? ParseConditional() : ParseOr();
}

Result<ExprPtr> Parser::ParseConditional() {
  HEARTH_ASSIGN(ExprPtr value, ParseOr());
  while (AtName("if")) {
    ExprPtr node = Make(ExprKind::kConditional);
    Next();
    HEARTH_ASSIGN(ExprPtr condition, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      HEARTH_ASSIGN(otherwise, ParseExpression());
    }
    node->args.push_back(std::move(value));
    node->args.push_back(std::move(condition));
    node->args.push_back(std::move(otherwise));
    HEARTH_ASSIGN(value, Finish(std::move(node)));
  }
  return value;
}

Result<ExprPtr> Parser::ParseOr() {
  HEARTH_ASSIGN(ExprPtr left, ParseAnd());
  while (AtName("or")) {
    const int line = Current().line;
    Next();
    HEARTH_ASSIGN(ExprPtr right, ParseAnd());
    HEARTH_ASSIGN(left, Binary(ExprKind::kOr, Op::kNot, line, std::move(left),
                               std::move(right)));
  }
  return left;
}

Result<ExprPtr> Parser::ParseAnd() {
  HEARTH_ASSIGN(ExprPtr left, ParseNot());
  while (AtName("and")) {
    const int line = Current().line;
    Next();
    HEARTH_ASSIGN(ExprPtr right, ParseNot());
    HEARTH_ASSIGN(left, Binary(ExprKind::kAnd, Op::kNot, line, std::move(left),
                               std::move(right)));
  }
  return left;
}

Result<ExprPtr> Parser::ParseNot() {
  if (!AtName("not")) return ParseCompare();
  const Nest nest(this);
  if (nest.TooDeep()) return TooDeep(program_.name, Current().line);
  ExprPtr node = Make(ExprKind::kUnary);
  node->op = Op::kNot;
  Next();
  HEARTH_ASSIGN(ExprPtr value, ParseNot());
  node->args.push_back(std::move(value));
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseCompare() {
  ExprPtr node = Make(ExprKind::kCompare);
  HEARTH_ASSIGN(ExprPtr first, ParseSum());
  while (true) {
    const auto* op = std::find_if(
        std::begin(kComparisons), std::end(kComparisons),
        [this](const NamedOp& candidate) { return AtOp(candidate.text); });
    if (op != std::end(kComparisons)) {
      Next();
      node->ops.push_back(op->op);
    } else if (SkipName("in")) {
      node->ops.push_back(Op::kIn);
    } else if (AtName("not") && Ahead().type == Token::Type::kName &&
               Ahead().text == "in") {
      Next();
      Next();
      node->ops.push_back(Op::kNotIn);
    } else {
      break;
    }
    if (node->args.empty()) node->args.push_back(std::move(first));
    HEARTH_ASSIGN(ExprPtr right, ParseSum());
    node->args.push_back(std::move(right));
  }
  if (node->ops.empty()) return first;
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseSum() {
  HEARTH_ASSIGN(ExprPtr left, ParseConcat());
  while (AtOp("+") || AtOp("-")) {
    const Op op = AtOp("+") ? Op::kAdd : Op::kSubtract;
    const int line = Current().line;
    Next();
    HEARTH_ASSIGN(ExprPtr right, ParseConcat());
    HEARTH_ASSIGN(left, Binary(ExprKind::kBinary, op, line, std::move(left),
                               std::move(right)));
  }
  return left;
}

Result<ExprPtr> Parser::ParseConcat() {
  ExprPtr node = Make(ExprKind::kConcat);
  HEARTH_ASSIGN(ExprPtr first, ParseProduct());
  if (!AtOp("~")) return first;
  node->args.push_back(std::move(first));
  while (SkipOp("~")) {
    HEARTH_ASSIGN(ExprPtr part, ParseProduct());
    node->args.push_back(std::move(part));
  }
  return Finish(std::move(node));
}

Result<ExprPtr> Parser::ParseProduct() {
  HEARTH_ASSIGN(ExprPtr left, ParsePower());
  while (true) {
    const auto* op = std::find_if(
        std::begin(kProducts), std::end(kProducts),
        [this](const NamedOp& candidate) { return AtOp(candidate.text); });
    if (op == std::end(kProducts)) return left;
    const int line = Current().line;
    Next();
    HEARTH_ASSIGN(ExprPtr right, ParsePower());
    HEARTH_ASSIGN(left, Binary(ExprKind::kBinary, op->op, line, std::move(left),
                               std::move(right)));
  }
}

Result<ExprPtr> Parser::ParsePower() {
  HEARTH_ASSIGN(ExprPtr left, ParseUnary(true));
  while (AtOp("**")) {
    const int line = Current().line;
    Next();
    HEARTH_ASSIGN(ExprPtr right, ParseUnary(true));
    HEARTH_ASSIGN(left, Binary(ExprKind::kBinary, Op::kPower, line,
                               std::move(left), std::move(right)));
  }
  return left;
}

Result<ExprPtr> Parser::ParseUnary(bool with_filter) {
  const Nest nest(this);
  if (nest.TooDeep()) return TooDeep(program_.name, Current().line);
  ExprPtr node;
  if (AtOp("-") || AtOp("+")) {
    ExprPtr unary = Make(ExprKind::kUnary);
    unary->op = AtOp("-") ? Op::kNegative : Op::kPositive;
    Next();
    HEARTH_ASSIGN(ExprPtr operand, ParseUnary(false));
    unary->args.push_back(std::move(operand));
    HEARTH_ASSIGN(node, Finish(std::move(unary)));
  } else {
    HEARTH_ASSIGN(node, ParsePrimary());
  }
  HEARTH_ASSIGN(node, ParsePostfix(std::move(node)));
  if (!with_filter) return node;
  return ParseFilters(std::move(node));
}

Result<ExprPtr> Parser::ParsePrimary() {
  const Token& token = Current();
  ExprPtr node = Make(ExprKind::kConst);
  switch (token.type) {
    case Token::Type::kName:
      Next();
      if (token.text == "true" || token.text == "True") {
        node->constant = Value::Bool(true);
      } else if (token.text == "false" || token.text == "False") {
        node->constant = Value::Bool(false);
      } else if (token.text == "none" || token.text == "None") {
        node->constant = Value::None();
      } else {
        node->kind = ExprKind::kName;
        node->name = token.text;
        node->symbol = Symbol(token.text);
      }
      return node;
    case Token::Type::kString: {
      std::string text;
      while (Current().type == Token::Type::kString) {
        text += Current().text;
        Next();
      }
      node->constant = Value::String(std::move(text));
      return node;
    }
    case Token::Type::kInteger:
      node->constant = Value::Int(token.int_value);
      Next();
      return node;
    case Token::Type::kFloat:
      node->constant = Value::Float(token.float_value);
      Next();
      return node;
    default:
      break;
  }
  if (AtOp("(")) return ParseParenthesis();
  if (AtOp("[")) return ParseList();
  if (AtOp("{")) return ParseDict();
  return Fail("unexpected " + Found());
}

bool Parser::AtTupleEnd(const char* stop) const {
  return Current().type == Token::Type::kBlockEnd ||
         Current().type == Token::Type::kVariableEnd ||
         Current().type == Token::Type::kEnd || AtOp(")") || AtOp("=") ||
         (stop != nullptr && AtName(stop));
}

Result<ExprPtr> Parser::ParseTuple(bool with_conditional, const char* stop) {
  ExprPtr tuple = Make(ExprKind::kTuple);
  HEARTH_ASSIGN(ExprPtr first, ParseExpression(with_conditional));
  if (!AtOp(",")) return first;
  tuple->args.push_back(std::move(first));
  while (SkipOp(",")) {
    if (AtTupleEnd(stop)) break;
    HEARTH_ASSIGN(ExprPtr item, ParseExpression(with_conditional));
    tuple->args.push_back(std::move(item));
  }
  return Finish(std::move(tuple));
}

Result<ExprPtr> Parser::ParseParenthesis() {
  Next();
  if (AtOp(")")) {
    ExprPtr empty = Make(ExprKind::kTuple);
    Next();
    return empty;
  }
  HEARTH_ASSIGN(ExprPtr inner, ParseTuple(true));
  HEARTH_TRY(ExpectOp(")"));
  return inner;
}

Result<ExprPtr> Parser::ParseList() {
  ExprPtr list = Make(ExprKind::kList);
  Next();
  while (!AtOp("]")) {
    HEARTH_ASSIGN(ExprPtr item, ParseExpression());
    list->args.push_back(std::move(item));
    if (!SkipOp(",")) break;
  }
  HEARTH_TRY(ExpectOp("]"));
  return Finish(std::move(list));
}

Result<ExprPtr> Parser::ParseDict() {
  ExprPtr dict = Make(ExprKind::kDict);
  Next();
  while (!AtOp("}")) {
    HEARTH_ASSIGN(ExprPtr key, ParseExpression());
    HEARTH_TRY(ExpectOp(":"));
    HEARTH_ASSIGN(ExprPtr value, ParseExpression());
    dict->args.push_back(std::move(key));
    dict->args.push_back(std::move(value));
    if (!SkipOp(",")) break;
  }
  HEARTH_TRY(ExpectOp("}"));
  return Finish(std::move(dict));
}

}  // namespace hearth::jinja
