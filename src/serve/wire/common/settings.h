// Settings that several dialects have under the same names.
#pragma once

#include <string>

#include "serve/wire/json/object_reader.h"
#include "serve/wire/request.h"

namespace hearth::serve {

constexpr std::size_t kStopTextsMax = 16;
constexpr std::size_t kStopBytesMax = 4096;
constexpr std::size_t kLogitBiasMax = 1024;
constexpr int kChoicesMax = 8;
constexpr int kTopLogprobsMax = 20;

// temperature, top_p, top_k, min_p, repeat_penalty, repeat_last_n,
// presence_penalty, frequency_penalty, seed, logit_bias. top_k of -1 is off, as
// everywhere.
void ReadSampling(ObjectReader& reader, SamplingWishes& sampling);
// A text or a list of them, under any name.
void ReadStop(ObjectReader& reader, const char* name, WireRequest& request);
// A count of tokens: -1 (until the end) or from `min` on.
void ReadMaxTokens(ObjectReader& reader, const char* name, int min,
                   WireRequest& request);

// Thoughts on or off and how many, as variables of the template; what it does
// not read has no effect and is named.
class TemplateVariables {
 public:
  TemplateVariables(const ParseContext& context, Ignored& ignored)
      : context_(context), ignored_(ignored) {}
  // chat_template_kwargs: it wins over what the others would set.
  void Take(const OrderedJson& object, const std::string& path);
  void Think(bool on, const std::string& field);
  void Effort(const std::string& effort, const std::string& field);
  // Into the request; keeps earlier thoughts where the template can drop them.
  void Give(WireRequest& request);

 private:
  bool Reads(const std::string& name) const;
  bool Set(const std::string& name, OrderedJson value);

  const ParseContext& context_;
  Ignored& ignored_;
  bool thoughts_ = true;
  OrderedJson values_ = OrderedJson::object();
};

// response_format of chat, `format` of responses and messages: text,
// json_object, json_schema. `schema_inside`: the schema is in a member
// `json_schema`, as chat has it.
Checked ReadFormat(const OrderedJson& format, const std::string& path,
                   bool schema_inside, Ignored& ignored, AnswerForm& form);
void ReadGrammar(ObjectReader& reader, AnswerForm& form);

// `model`, and whether it may be served under that name.
Checked ReadModel(ObjectReader& reader, const ParseContext& context,
                  Ignored& ignored, WireRequest& request);

}  // namespace hearth::serve
