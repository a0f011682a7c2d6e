// Tokens to syntax tree: a recursive descent over the Jinja grammar, split in
// parser.cc (tokens), parser_expr.cc and parser_suffix.cc (expressions) and
// parser_stmt.cc (statements).
#pragma once

#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "chat/jinja/limits.h"
#include "chat/jinja/parse/ast.h"
#include "chat/jinja/parse/lexer.h"
#include "hearth/result.h"

namespace hearth::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string name,
         const ChatTemplateLimits& limits);

  // kCorrupt for a syntax error, kUnsupported for a tag that would load other
  // templates, kResourceFull for nesting; each message starts "NAME:LINE: ".
  Result<Program> Run();

 private:
  class Nest;  // counts the depth of the recursion

  // Tokens.
  const Token& Current() const { return tokens_[pos_]; }
  const Token& Ahead() const {
    return tokens_[pos_ + 1 < tokens_.size() ? pos_ + 1 : pos_];
  }
  void Next() {
    if (pos_ + 1 < tokens_.size()) ++pos_;
  }
  bool AtOp(const char* op) const;
  bool AtName(const char* name) const;
  bool SkipOp(const char* op);
  bool SkipName(const char* name);
  Result<void> ExpectOp(const char* op);
  Result<void> ExpectBlockEnd();
  Result<std::string> ExpectName();
  Error Fail(const std::string& message) const;
  std::string Found() const;
  int Symbol(const std::string& name);

  // Expressions, loosest first.
  Result<ExprPtr> ParseExpression(bool with_conditional = true);
  Result<ExprPtr> ParseConditional();
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  Result<ExprPtr> ParseSum();
  Result<ExprPtr> ParseConcat();
  Result<ExprPtr> ParseProduct();
  Result<ExprPtr> ParsePower();
  Result<ExprPtr> ParseUnary(bool with_filter);
  Result<ExprPtr> ParsePrimary();
  Result<ExprPtr> ParsePostfix(ExprPtr node);
  Result<ExprPtr> ParseFilters(ExprPtr node);
  Result<ExprPtr> ParseOneFilter(ExprPtr node);
  Result<ExprPtr> ParseTest(ExprPtr node);
  Result<ExprPtr> ParseSubscript(ExprPtr node);
  Result<ExprPtr> ParseSubscripted();
  Result<ExprPtr> ParseDot(ExprPtr node);
  Result<void> ParseArgs(Expr* call);
  Result<ExprPtr> ParseParenthesis();
  Result<ExprPtr> ParseList();
  Result<ExprPtr> ParseDict();
  // One expression, or a tuple when commas follow. `stop` is a name that ends
  // it ("in" has no place here; "if" and "recursive" do).
  Result<ExprPtr> ParseTuple(bool with_conditional, const char* stop = nullptr);
  bool AtTupleEnd(const char* stop) const;
  ExprPtr Make(ExprKind kind) const;
  // Adopts parts and refuses a tree that is too deep.
  Result<ExprPtr> Finish(ExprPtr node) const;
  Result<ExprPtr> Binary(ExprKind kind, Op op, int line, ExprPtr left,
                         ExprPtr right) const;

  // Statements.
  Result<Body> ParseBody(std::initializer_list<const char*> ends);
  Result<StmtPtr> ParseStatement();
  Result<StmtPtr> ParseFor(int line);
  Result<StmtPtr> ParseIf(int line);
  Result<StmtPtr> ParseSet(int line);
  Result<StmtPtr> ParseMacro(int line);
  Result<StmtPtr> ParseCallBlock(int line);
  Result<StmtPtr> ParseFilterBlock(int line);
  Result<StmtPtr> ParseWith(int line);
  Result<StmtPtr> ParseGeneration(int line);
  Result<StmtPtr> ParseLoopControl(int line, StmtKind kind);
  Result<Target> ParseTarget(bool with_tuple, bool with_namespace);
  Result<Target> ParseOneTarget(bool with_namespace);
  Result<void> ParseSignature(MacroNode* macro);
  // `{% endX %}`.
  Result<void> ExpectEnd(const char* name);
  static bool IsReserved(const std::string& name);

  const std::vector<Token> tokens_;
  const ChatTemplateLimits& limits_;
  std::size_t pos_ = 0;
  int nesting_ = 0;
  int loops_ = 0;  // loops around this point, in the same macro
  // The macro being read; nullptr outside of one.
  MacroNode* macro_ = nullptr;
  Program program_;
  std::unordered_map<std::string, int> symbols_;
};

// Counts one level for as long as it lives.
class Parser::Nest {
 public:
  explicit Nest(Parser* parser) : parser_(parser) { ++parser_->nesting_; }
  ~Nest() { --parser_->nesting_; }
  Nest(const Nest&) = delete;
  Nest& operator=(const Nest&) = delete;
  bool TooDeep() const {
    return parser_->nesting_ > parser_->limits_.nesting_max;
  }

 private:
  Parser* parser_;
};

}  // namespace hearth::jinja
