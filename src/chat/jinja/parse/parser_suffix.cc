// What may follow an operand: attributes, subscripts, calls, filters, tests.
#include "chat/jinja/parse/parser.h"

namespace hearth::jinja {

Result<ExprPtr> Parser::ParsePostfix(ExprPtr node) {
  while (true) {
    if (AtOp(".")) {
      HEARTH_ASSIGN(node, ParseDot(std::move(node)));
    } else if (AtOp("[")) {
      HEARTH_ASSIGN(node, ParseSubscript(std::move(node)));
    } else if (AtOp("(")) {
      ExprPtr call = Make(ExprKind::kCall);
      call->target = std::move(node);
      HEARTH_TRY(ParseArgs(call.get()));
      HEARTH_ASSIGN(node, Finish(std::move(call)));
    } else {
      return node;
    }
  }
}

Result<ExprPtr> Parser::ParseDot(ExprPtr node) {
  ExprPtr access = Make(ExprKind::kAttribute);
  access->target = std::move(node);
  Next();
  if (Current().type == Token::Type::kName) {
    access->name = Current().text;
  } else if (Current().type == Token::Type::kInteger) {
    access->kind = ExprKind::kItem;
    ExprPtr index = Make(ExprKind::kConst);
    index->constant = Value::Int(Current().int_value);
    access->args.push_back(std::move(index));
  } else {
    return Fail("expected a name or a number behind '.', found " + Found());
  }
  Next();
  return Finish(std::move(access));
}

Result<ExprPtr> Parser::ParseSubscript(ExprPtr node) {
  ExprPtr access = Make(ExprKind::kItem);
  access->target = std::move(node);
  Next();
  ExprPtr tuple = Make(ExprKind::kTuple);
  while (!AtOp("]")) {
    if (!tuple->args.empty()) {
      HEARTH_TRY(ExpectOp(","));
    }
    HEARTH_ASSIGN(ExprPtr index, ParseSubscripted());
    tuple->args.push_back(std::move(index));
  }
  HEARTH_TRY(ExpectOp("]"));
  if (tuple->args.size() == 1) {
    access->args.push_back(std::move(tuple->args[0]));
  } else {
    HEARTH_ASSIGN(tuple, Finish(std::move(tuple)));
    access->args.push_back(std::move(tuple));
  }
  return Finish(std::move(access));
}

Result<ExprPtr> Parser::ParseSubscripted() {
  ExprPtr slice = Make(ExprKind::kSlice);
  slice->args.resize(3);
  if (!AtOp(":")) {
    HEARTH_ASSIGN(slice->args[0], ParseExpression());
    if (!AtOp(":")) return std::move(slice->args[0]);
  }
  Next();
  if (!AtOp(":") && !AtOp("]") && !AtOp(",")) {
    HEARTH_ASSIGN(slice->args[1], ParseExpression());
  }
  if (SkipOp(":") && !AtOp("]") && !AtOp(",")) {
    HEARTH_ASSIGN(slice->args[2], ParseExpression());
  }
  return Finish(std::move(slice));
}

Result<void> Parser::ParseArgs(Expr* call) {
  HEARTH_TRY(ExpectOp("("));
  bool needs_comma = false;
  while (!AtOp(")")) {
    if (needs_comma) {
      HEARTH_TRY(ExpectOp(","));
      if (AtOp(")")) break;
    }
    needs_comma = true;
    if (SkipOp("*")) {
      if (call->star || call->star_star) return Fail("misplaced '*' argument");
      HEARTH_ASSIGN(call->star, ParseExpression());
    } else if (SkipOp("**")) {
      if (call->star_star) return Fail("misplaced '**' argument");
      HEARTH_ASSIGN(call->star_star, ParseExpression());
    } else if (Current().type == Token::Type::kName &&
               Ahead().type == Token::Type::kOperator && Ahead().text == "=") {
      if (call->star_star) return Fail("an argument follows '**'");
      std::string name = Current().text;
      Next();
      Next();
      HEARTH_ASSIGN(ExprPtr value, ParseExpression());
      call->named.emplace_back(std::move(name), std::move(value));
    } else {
      if (call->star || call->star_star || !call->named.empty()) {
        return Fail("a positional argument follows a named one");
      }
      HEARTH_ASSIGN(ExprPtr value, ParseExpression());
      call->args.push_back(std::move(value));
    }
  }
  return ExpectOp(")");
}

Result<ExprPtr> Parser::ParseFilters(ExprPtr node) {
  while (true) {
    if (SkipOp("|")) {
      HEARTH_ASSIGN(node, ParseOneFilter(std::move(node)));
    } else if (AtName("is")) {
      HEARTH_ASSIGN(node, ParseTest(std::move(node)));
    } else if (AtOp("(")) {
      ExprPtr call = Make(ExprKind::kCall);
      call->target = std::move(node);
      HEARTH_TRY(ParseArgs(call.get()));
      HEARTH_ASSIGN(node, Finish(std::move(call)));
    } else {
      return node;
    }
  }
}

// From behind the '|'.
Result<ExprPtr> Parser::ParseOneFilter(ExprPtr node) {
  ExprPtr filter = Make(ExprKind::kFilter);
  filter->target = std::move(node);
  HEARTH_ASSIGN(filter->name, ExpectName());
  while (SkipOp(".")) {
    HEARTH_ASSIGN(const std::string part, ExpectName());
    filter->name += "." + part;
  }
  if (AtOp("(")) {
    HEARTH_TRY(ParseArgs(filter.get()));
  }
  return Finish(std::move(filter));
}

Result<ExprPtr> Parser::ParseTest(ExprPtr node) {
  ExprPtr test = Make(ExprKind::kTest);
  test->target = std::move(node);
  Next();
  const bool negated = SkipName("not");
  HEARTH_ASSIGN(test->name, ExpectName());
  while (SkipOp(".")) {
    HEARTH_ASSIGN(const std::string part, ExpectName());
    test->name += "." + part;
  }
  if (AtOp("(")) {
    HEARTH_TRY(ParseArgs(test.get()));
  } else {
    const Token::Type type = Current().type;
    const bool starts_operand =
        (type == Token::Type::kName && !AtName("else") && !AtName("or") &&
         !AtName("and")) ||
        type == Token::Type::kString || type == Token::Type::kInteger ||
        type == Token::Type::kFloat || AtOp("[") || AtOp("{");
    if (starts_operand) {
      if (AtName("is")) return Fail("tests cannot be chained with 'is'");
      HEARTH_ASSIGN(ExprPtr operand, ParsePrimary());
      HEARTH_ASSIGN(operand, ParsePostfix(std::move(operand)));
      test->args.push_back(std::move(operand));
    }
  }
  HEARTH_ASSIGN(test, Finish(std::move(test)));
  if (!negated) return test;
  ExprPtr negation = Make(ExprKind::kUnary);
  negation->line = test->line;
  negation->op = Op::kNot;
  negation->args.push_back(std::move(test));
  return Finish(std::move(negation));
}

}  // namespace hearth::jinja
