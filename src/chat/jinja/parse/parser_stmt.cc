// Statements.
#include "chat/jinja/parse/parser.h"

namespace hearth::jinja {

using Type = Token::Type;

// Statements up to `{% NAME` with NAME in `ends`; the parser then stands on
// NAME. With no `ends`, up to the end of the template.
Result<Body> Parser::ParseBody(std::initializer_list<const char*> ends) {
  const Nest nest(this);
  if (nest.TooDeep()) {
    return {Code::kResourceFull, Fail("the template nests too deep").message};
  }
  Body body;
  while (true) {
    const int line = Current().line;
    if (Current().type == Type::kText) {
      auto text = std::make_unique<Stmt>();
      text->kind = StmtKind::kText;
      text->line = line;
      text->text = Current().text;
      body.push_back(std::move(text));
      Next();
    } else if (Current().type == Type::kVariableBegin) {
      Next();
      auto print = std::make_unique<Stmt>();
      print->kind = StmtKind::kPrint;
      print->line = line;
      HEARTH_ASSIGN(print->value, ParseTuple(true));
      if (Current().type != Type::kVariableEnd) {
        return Fail("expected '}}', found " + Found());
      }
      Next();
      body.push_back(std::move(print));
    } else if (Current().type == Type::kBlockBegin) {
      Next();
      for (const char* end : ends) {
        if (AtName(end)) return body;
      }
      HEARTH_ASSIGN(StmtPtr statement, ParseStatement());
      body.push_back(std::move(statement));
    } else {
      if (ends.size() == 0) return body;
      return Fail("a block has no end; expected '" +
                  std::string(*ends.begin()) + "'");
    }
  }
}

Result<StmtPtr> Parser::ParseStatement() {
  const int line = Current().line;
  if (Current().type != Type::kName) {
    return Fail("expected a tag, found " + Found());
  }
  const std::string tag = Current().text;
  Next();
  if (tag == "for") return ParseFor(line);
  if (tag == "if") return ParseIf(line);
  if (tag == "set") return ParseSet(line);
  if (tag == "macro") return ParseMacro(line);
  if (tag == "call") return ParseCallBlock(line);
  if (tag == "filter") return ParseFilterBlock(line);
  if (tag == "with") return ParseWith(line);
  if (tag == "generation") return ParseGeneration(line);
  if (tag == "break") return ParseLoopControl(line, StmtKind::kBreak);
  if (tag == "continue") return ParseLoopControl(line, StmtKind::kContinue);
  for (const char* other : {"import", "from", "include", "extends", "block"}) {
    if (tag == other) {
      return {Code::kUnsupported,
              Fail("tag '" + tag + "' would need other templates").message};
    }
  }
  return Fail("unknown tag '" + tag + "'");
}

Result<void> Parser::ExpectEnd(const char* name) {
  if (!SkipName(name)) {
    return Fail("expected '" + std::string(name) + "', found " + Found());
  }
  return ExpectBlockEnd();
}

Result<StmtPtr> Parser::ParseFor(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kFor;
  node->line = line;
  HEARTH_ASSIGN(node->target, ParseTarget(true, false));
  if (!SkipName("in")) return Fail("expected 'in', found " + Found());
  HEARTH_ASSIGN(node->value, ParseTuple(false, "recursive"));
  if (SkipName("if")) {
    HEARTH_ASSIGN(node->condition, ParseExpression());
  }
  node->recursive = SkipName("recursive");
  HEARTH_TRY(ExpectBlockEnd());
  ++loops_;
  HEARTH_ASSIGN(node->body, ParseBody({"endfor", "else"}));
  --loops_;
  if (SkipName("else")) {
    HEARTH_TRY(ExpectBlockEnd());
    HEARTH_ASSIGN(node->otherwise, ParseBody({"endfor"}));
  }
  HEARTH_TRY(ExpectEnd("endfor"));
  return node;
}

Result<StmtPtr> Parser::ParseIf(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kIf;
  node->line = line;
  while (true) {
    HEARTH_ASSIGN(ExprPtr condition, ParseTuple(false));
    HEARTH_TRY(ExpectBlockEnd());
    HEARTH_ASSIGN(Body body, ParseBody({"elif", "else", "endif"}));
    node->branches.emplace_back(std::move(condition), std::move(body));
    if (!SkipName("elif")) break;
  }
  if (SkipName("else")) {
    HEARTH_TRY(ExpectBlockEnd());
    HEARTH_ASSIGN(node->otherwise, ParseBody({"endif"}));
  }
  HEARTH_TRY(ExpectEnd("endif"));
  return node;
}

Result<StmtPtr> Parser::ParseSet(int line) {
  auto node = std::make_unique<Stmt>();
  node->line = line;
  HEARTH_ASSIGN(node->target, ParseTarget(true, true));
  if (SkipOp("=")) {
    node->kind = StmtKind::kSet;
    HEARTH_ASSIGN(node->value, ParseTuple(true));
    HEARTH_TRY(ExpectBlockEnd());
    return node;
  }
  node->kind = StmtKind::kSetBlock;
  while (SkipOp("|")) {
    HEARTH_ASSIGN(node->value, ParseOneFilter(std::move(node->value)));
  }
  HEARTH_TRY(ExpectBlockEnd());
  HEARTH_ASSIGN(node->body, ParseBody({"endset"}));
  HEARTH_TRY(ExpectEnd("endset"));
  return node;
}

Result<void> Parser::ParseSignature(MacroNode* macro) {
  HEARTH_TRY(ExpectOp("("));
  while (!AtOp(")")) {
    if (!macro->parameters.empty()) {
      HEARTH_TRY(ExpectOp(","));
      if (AtOp(")")) break;
    }
    HEARTH_ASSIGN(const std::string name, ExpectName());
    if (IsReserved(name)) return Fail("cannot assign to '" + name + "'");
    macro->parameters.push_back(Symbol(name));
    macro->parameter_names.push_back(name);
    if (SkipOp("=")) {
      HEARTH_ASSIGN(ExprPtr value, ParseExpression());
      macro->defaults.push_back(std::move(value));
    } else if (!macro->defaults.empty()) {
      return Fail("a parameter without default follows one with default");
    }
  }
  return ExpectOp(")");
}

Result<StmtPtr> Parser::ParseMacro(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kMacro;
  node->line = line;
  node->macro = std::make_unique<MacroNode>();
  HEARTH_ASSIGN(node->macro->name, ExpectName());
  node->symbol = Symbol(node->macro->name);
  MacroNode* const outer = macro_;
  const int outer_loops = loops_;
  macro_ = node->macro.get();
  loops_ = 0;
  HEARTH_TRY(ParseSignature(macro_));
  HEARTH_TRY(ExpectBlockEnd());
  HEARTH_ASSIGN(node->macro->body, ParseBody({"endmacro"}));
  macro_ = outer;
  loops_ = outer_loops;
  HEARTH_TRY(ExpectEnd("endmacro"));
  return node;
}

Result<StmtPtr> Parser::ParseCallBlock(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kCall;
  node->line = line;
  node->macro = std::make_unique<MacroNode>();
  node->macro->name = "caller";
  MacroNode* const outer = macro_;
  const int outer_loops = loops_;
  if (AtOp("(")) {
    macro_ = node->macro.get();
    HEARTH_TRY(ParseSignature(macro_));
    macro_ = outer;
  }
  HEARTH_ASSIGN(node->value, ParseExpression());
  if (node->value->kind != ExprKind::kCall) {
    return Fail("a call block needs a call");
  }
  HEARTH_TRY(ExpectBlockEnd());
  macro_ = node->macro.get();
  loops_ = 0;
  HEARTH_ASSIGN(node->macro->body, ParseBody({"endcall"}));
  // A caller of the surrounding macro stays visible in the block.
  const bool passes_caller = node->macro->uses_caller;
  node->macro->uses_caller = false;
  macro_ = outer;
  if (macro_ != nullptr) macro_->uses_caller |= passes_caller;
  loops_ = outer_loops;
  HEARTH_TRY(ExpectEnd("endcall"));
  return node;
}

Result<StmtPtr> Parser::ParseFilterBlock(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kFilter;
  node->line = line;
  HEARTH_ASSIGN(node->value, ParseOneFilter(nullptr));
  while (SkipOp("|")) {
    HEARTH_ASSIGN(node->value, ParseOneFilter(std::move(node->value)));
  }
  HEARTH_TRY(ExpectBlockEnd());
  HEARTH_ASSIGN(node->body, ParseBody({"endfilter"}));
  HEARTH_TRY(ExpectEnd("endfilter"));
  return node;
}

Result<StmtPtr> Parser::ParseWith(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kWith;
  node->line = line;
  while (Current().type != Type::kBlockEnd) {
    if (!node->pairs.empty()) {
      HEARTH_TRY(ExpectOp(","));
    }
    HEARTH_ASSIGN(Target target, ParseOneTarget(false));
    HEARTH_TRY(ExpectOp("="));
    HEARTH_ASSIGN(ExprPtr value, ParseExpression());
    node->pairs.emplace_back(std::move(target), std::move(value));
  }
  HEARTH_TRY(ExpectBlockEnd());
  HEARTH_ASSIGN(node->body, ParseBody({"endwith"}));
  HEARTH_TRY(ExpectEnd("endwith"));
  return node;
}

Result<StmtPtr> Parser::ParseGeneration(int line) {
  auto node = std::make_unique<Stmt>();
  node->kind = StmtKind::kScope;
  node->line = line;
  HEARTH_TRY(ExpectBlockEnd());
  const int outer_loops = loops_;
  loops_ = 0;
  HEARTH_ASSIGN(node->body, ParseBody({"endgeneration"}));
  loops_ = outer_loops;
  HEARTH_TRY(ExpectEnd("endgeneration"));
  return node;
}

Result<StmtPtr> Parser::ParseLoopControl(int line, StmtKind kind) {
  if (loops_ == 0) return Fail("'break' or 'continue' outside of a loop");
  auto node = std::make_unique<Stmt>();
  node->kind = kind;
  node->line = line;
  HEARTH_TRY(ExpectBlockEnd());
  return node;
}

bool Parser::IsReserved(const std::string& name) {
  return name == "true" || name == "false" || name == "none" ||
         name == "True" || name == "False" || name == "None";
}

Result<Target> Parser::ParseOneTarget(bool with_namespace) {
  Target target;
  if (SkipOp("(")) {
    HEARTH_ASSIGN(target, ParseTarget(true, with_namespace));
    HEARTH_TRY(ExpectOp(")"));
    return target;
  }
  HEARTH_ASSIGN(const std::string name, ExpectName());
  if (IsReserved(name)) return Fail("cannot assign to '" + name + "'");
  target.symbol = Symbol(name);
  if (with_namespace && SkipOp(".")) {
    HEARTH_ASSIGN(target.attribute, ExpectName());
  }
  return target;
}

Result<Target> Parser::ParseTarget(bool with_tuple, bool with_namespace) {
  const Nest nest(this);
  if (nest.TooDeep()) {
    return {Code::kResourceFull, Fail("the template nests too deep").message};
  }
  HEARTH_ASSIGN(Target first, ParseOneTarget(with_namespace));
  if (!with_tuple || !AtOp(",")) return first;
  Target tuple;
  tuple.parts.push_back(std::move(first));
  while (SkipOp(",")) {
    if (AtName("in") || AtOp("=") || AtOp(")") ||
        Current().type == Type::kBlockEnd) {
      break;
    }
    HEARTH_ASSIGN(Target part, ParseOneTarget(with_namespace));
    tuple.parts.push_back(std::move(part));
  }
  return tuple;
}

}  // namespace hearth::jinja
