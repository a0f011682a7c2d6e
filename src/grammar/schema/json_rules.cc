#include "grammar/schema/json_rules.h"

#include "grammar/schema/decimal_range.h"
#include "grammar/text/char_set.h"

namespace hearth::grammar {
namespace {

constexpr int kIndentMax = 32;
constexpr int kExponentDigitsMax = 3;

}  // namespace

JsonRules::JsonRules(Automaton& automaton) : automaton_(automaton) {
  Automaton& a = automaton_;
  const StateId indent = a.Close(RawChar(a, {{' ', ' '}, {'\t', '\t'}}));
  blank_ = a.Close(
      a.Choice({a.Empty(), a.Literal(" "),
                a.Sequence(a.Literal("\n"), a.Repeat(indent, 0, kIndentMax))}));
  MakeString();
  MakeNumbers();
  boolean_ = a.Close(a.Choice({a.Literal("true"), a.Literal("false")}));
  null_ = a.Close(a.Literal("null"));
  // Values are made of values: the start of `any` is known before its parts.
  any_ = a.AddState();
  array_ = List("[", any_, "]");
  const StateId member = a.Close(a.Sequence(
      a.Sequence(a.Call(string_), a.Sequence(a.Call(blank_), Token(":"))),
      a.Call(any_)));
  object_ = List("{", member, "}");
  const StateId end = a.AddState();
  a.at(end).final = true;
  for (const StateId kind :
       {string_, number_, boolean_, null_, object_, array_}) {
    a.AddCall(any_, kind, end);
  }
}

void JsonRules::MakeString() {
  Automaton& a = automaton_;
  const CharSet hex = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}};
  const StateId digit = a.Close(RawChar(a, hex));
  const CharSet high = {{'8', '9'}, {'a', 'b'}, {'A', 'B'}};
  const CharSet low = {{'c', 'f'}, {'C', 'F'}};
  const CharSet d = {{'d', 'd'}, {'D', 'D'}};
  const auto surrogate = [&](const CharSet& second) {
    return a.Sequence(a.Literal("\\u"),
                      a.Sequence(a.Sequence(RawChar(a, d), RawChar(a, second)),
                                 a.Repeat(digit, 2, 2)));
  };
  // \uD800 to \uDFFF come as pairs.
  const Fragment single = a.Sequence(
      a.Literal("\\u"),
      a.Choice({a.Sequence(RawChar(a, hex.Without(d)), a.Repeat(digit, 3, 3)),
                a.Sequence(a.Sequence(RawChar(a, d), RawChar(a, {{'0', '7'}})),
                           a.Repeat(digit, 2, 2))}));
  const Fragment pair = a.Sequence(surrogate(high), surrogate(low));
  CharSet short_escapes;
  for (const char c : {'"', '\\', '/', 'b', 'f', 'n', 'r', 't'}) {
    const auto code = static_cast<char32_t>(c);
    short_escapes.Add(code, code);
  }
  const CharSet raw = CharSet{{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}.Complement();
  const auto character = [&] {
    return a.Choice({RawChar(a, raw),
                     a.Sequence(a.Literal("\\"), RawChar(a, short_escapes)),
                     single, pair});
  };
  string_char_ = a.Close(character());
  string_ = a.Close(
      a.Sequence(a.Sequence(a.Literal("\""), a.Star(a.Call(string_char_))),
                 a.Literal("\"")));
}

void JsonRules::MakeNumbers() {
  Automaton& a = automaton_;
  const CharSet digits = {{'0', '9'}};
  const StateId digit = a.Close(RawChar(a, digits));
  const auto whole = [&] {
    return a.Sequence(
        a.Optional(a.Literal("-")),
        a.Choice(
            {a.Literal("0"), a.Sequence(RawChar(a, {{'1', '9'}}),
                                        a.Repeat(digit, 0, kDigitsMax - 1))}));
  };
  integer_ = a.Close(whole());
  const Fragment fraction =
      a.Sequence(a.Literal("."), a.Repeat(digit, 1, kDigitsMax));
  const Fragment exponent =
      a.Sequence(RawChar(a, {{'e', 'e'}, {'E', 'E'}}),
                 a.Sequence(a.Optional(RawChar(a, {{'+', '+'}, {'-', '-'}})),
                            a.Repeat(digit, 1, kExponentDigitsMax)));
  number_ = a.Close(a.Sequence(
      whole(), a.Sequence(a.Optional(fraction), a.Optional(exponent))));
}

Fragment JsonRules::Token(std::string_view text) {
  return automaton_.Sequence(automaton_.Literal(text), automaton_.Call(blank_));
}

StateId JsonRules::List(std::string_view open, StateId item,
                        std::string_view close) {
  Automaton& a = automaton_;
  const auto spaced = [&] { return a.Sequence(a.Call(item), a.Call(blank_)); };
  const Fragment more = a.Sequence(Token(","), spaced());
  return a.Close(a.Sequence(
      Token(open), a.Sequence(a.Optional(a.Sequence(spaced(), a.Star(more))),
                              a.Literal(close))));
}

}  // namespace hearth::grammar
