#include "chat/jinja/parse/parser.h"

namespace hearth::jinja {

using Type = Token::Type;

Parser::Parser(std::vector<Token> tokens, std::string name,
               const ChatTemplateLimits& limits)
    : tokens_(std::move(tokens)), limits_(limits) {
  program_.name = std::move(name);
  program_.loop = Symbol("loop");
  program_.caller = Symbol("caller");
  program_.varargs = Symbol("varargs");
  program_.kwargs = Symbol("kwargs");
}

Result<Program> Parser::Run() {
  HEARTH_ASSIGN(program_.body, ParseBody({}));
  return std::move(program_);
}

bool Parser::AtOp(const char* op) const {
  return Current().type == Type::kOperator && Current().text == op;
}

bool Parser::AtName(const char* name) const {
  return Current().type == Type::kName && Current().text == name;
}

bool Parser::SkipOp(const char* op) {
  if (!AtOp(op)) return false;
  Next();
  return true;
}

bool Parser::SkipName(const char* name) {
  if (!AtName(name)) return false;
  Next();
  return true;
}

std::string Parser::Found() const {
  switch (Current().type) {
    case Type::kText:
      return "text";
    case Type::kBlockBegin:
      return "'{%'";
    case Type::kBlockEnd:
      return "the end of the statement";
    case Type::kVariableBegin:
      return "'{{'";
    case Type::kVariableEnd:
      return "the end of the print statement";
    case Type::kString:
      return "a string";
    case Type::kInteger:
    case Type::kFloat:
      return "a number";
    case Type::kEnd:
      return "the end of the template";
    default:
      return "'" + Current().text.substr(0, 40) + "'";
  }
}

Error Parser::Fail(const std::string& message) const {
  return {Code::kCorrupt, program_.name + ":" + std::to_string(Current().line) +
                              ": " + message};
}

Result<void> Parser::ExpectOp(const char* op) {
  if (SkipOp(op)) return {};
  return Fail("expected '" + std::string(op) + "', found " + Found());
}

Result<void> Parser::ExpectBlockEnd() {
  if (Current().type != Type::kBlockEnd) {
    return Fail("expected '%}', found " + Found());
  }
  Next();
  return {};
}

Result<std::string> Parser::ExpectName() {
  if (Current().type != Type::kName) {
    return Fail("expected a name, found " + Found());
  }
  std::string name = Current().text;
  Next();
  return name;
}

int Parser::Symbol(const std::string& name) {
  if (macro_ != nullptr) {
    macro_->uses_caller |= name == "caller";
    macro_->uses_varargs |= name == "varargs";
    macro_->uses_kwargs |= name == "kwargs";
  }
  const auto [it, is_new] =
      symbols_.emplace(name, static_cast<int>(program_.symbols.size()));
  if (is_new) program_.symbols.push_back(name);
  return it->second;
}

}  // namespace hearth::jinja
