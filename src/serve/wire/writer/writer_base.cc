#include "serve/wire/writer/writer_base.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "serve/wire/writer/ids.h"

namespace hearth::serve {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

// Bytes of a character that begins with `lead`; 1 for what begins none.
std::size_t LengthOf(unsigned char lead) {
  if (lead >= 0xf0 && lead <= 0xf4) return 4;
  if (lead >= 0xe0 && lead < 0xf0) return 3;
  if (lead >= 0xc2 && lead < 0xe0) return 2;
  return 1;
}

// How many last bytes may be the beginning of a character.
std::size_t OpenBytes(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(3, text.size());
       ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xc0) == 0x80) continue;
    return LengthOf(byte) > back ? back : 0;
  }
  return 0;
}

OrderedJson BytesOf(const std::string& token) {
  OrderedJson bytes = OrderedJson::array();
  for (const char c : token) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

}  // namespace

std::string WholeCharacters::Push(std::string_view text) {
  std::string whole = std::exchange(held_, {}) + std::string(text);
  const std::size_t open = OpenBytes(whole);
  held_ = whole.substr(whole.size() - open);
  whole.resize(whole.size() - open);
  return whole;
}

std::string WholeCharacters::Finish() {
  if (held_.empty()) return {};
  held_.clear();
  return std::string(kReplacement);
}

OrderedJson WrittenCall::ArgumentsObject() const {
  auto parsed = ParseBodyJson(arguments, "arguments");
  if (parsed.ok() && parsed->is_object()) return std::move(*parsed);
  return OrderedJson::object();
}

std::string WrittenCall::CustomInput() const {
  const OrderedJson object = ArgumentsObject();
  const auto input = object.find("input");
  if (input != object.end() && input->is_string()) {
    return input->get<std::string>();
  }
  return arguments;
}

WriterBase::WriterBase(const WireRequest& request, const ServedModel& served,
                       const std::string& request_id, std::int64_t now_s)
    : request_(request),
      served_(served),
      request_id_(request_id),
      now_s_(now_s),
      choices_(static_cast<std::size_t>(request.n_choices())),
      held_(choices_.size()) {}

PingRule WriterBase::pings() const {
  // Unstreamed, the head and a blank: the status is known then to be 200.
  if (!request_.stream) return {.first_ms = 60'000, .every_ms = 15'000};
  return {.first_ms = 5'000, .every_ms = 5'000};
}

void WriterBase::SetEcho(int choice, std::string text) {
  if (choice < 0 || static_cast<std::size_t>(choice) >= choices_.size()) {
    return;
  }
  choices_[static_cast<std::size_t>(choice)].echo = std::move(text);
}

void WriterBase::BeginCall(int index, const std::string& name) {
  WrittenChoice& choice = choices_[static_cast<std::size_t>(index)];
  WrittenCall call = {
      .id = CallId(request_id_, index, static_cast<int>(choice.calls.size()),
                   served_.short_call_ids),
      .name = name};
  const auto origin = request_.tools.find(name);
  if (origin != request_.tools.end()) {
    call.name = origin->second.name;
    call.space = origin->second.space;
    call.custom = origin->second.custom;
  }
  choice.calls.push_back(std::move(call));
}

std::string WriterBase::Add(int index, Kind kind, std::string text,
                            std::vector<LogprobEntry> logprobs) {
  WrittenChoice& choice = choices_[static_cast<std::size_t>(index)];
  if (kind == Kind::kReasoning) choice.reasoning += text;
  if (kind == Kind::kCallArguments) choice.calls.back().arguments += text;
  if (kind == Kind::kText) {
    choice.text += text;
    choice.logprobs.insert(choice.logprobs.end(), logprobs.begin(),
                           logprobs.end());
  }
  return OnPiece(index, choice, kind, text, logprobs);
}

std::string WriterBase::FlushHeld(int index) {
  Held& held = held_[static_cast<std::size_t>(index)];
  std::string rest = held.characters.Finish();
  std::vector<LogprobEntry> logprobs = std::exchange(held.logprobs, {});
  if (rest.empty() && logprobs.empty()) return {};
  return Add(index, held.kind, std::move(rest), std::move(logprobs));
}

std::string WriterBase::Event(int index, const AnswerEvent& event,
                              const std::vector<LogprobEntry>& logprobs) {
  if (index < 0 || static_cast<std::size_t>(index) >= choices_.size() ||
      choices_[static_cast<std::size_t>(index)].finished) {
    return {};
  }
  Held& held = held_[static_cast<std::size_t>(index)];
  if (event.kind == Kind::kFault) {
    if (parse_fault_.empty()) parse_fault_ = event.text;
    return {};
  }
  std::string out;
  if (event.kind != held.kind) {
    out += FlushHeld(index);
    held.kind = event.kind;
  }
  if (event.kind == Kind::kCallBegin) {
    BeginCall(index, event.text);
    held.in_call = true;
    return out + Add(index, event.kind, event.text, {});
  }
  if (event.kind == Kind::kCallEnd || event.kind == Kind::kCallArguments) {
    if (!held.in_call) return out;  // of a call that never began
    if (event.kind == Kind::kCallEnd) {
      held.in_call = false;
      choices_[static_cast<std::size_t>(index)].calls.back().ended = true;
      return out + Add(index, event.kind, {}, {});
    }
  }
  if (event.kind == Kind::kText || event.kind == Kind::kReasoning) {
    held.in_call = false;
  }
  held.logprobs.insert(held.logprobs.end(), logprobs.begin(), logprobs.end());
  std::string whole = held.characters.Push(event.text);
  if (whole.empty()) return out;
  return out + Add(index, event.kind, std::move(whole),
                   std::exchange(held.logprobs, {}));
}

std::string WriterBase::FinishChoice(int index, FinishReason reason,
                                     const std::string& stop_text) {
  if (index < 0 || static_cast<std::size_t>(index) >= choices_.size()) {
    return {};
  }
  WrittenChoice& choice = choices_[static_cast<std::size_t>(index)];
  if (choice.finished) return {};
  std::string out = FlushHeld(index);
  choice.finished = true;
  choice.reason = reason;
  choice.stop_text = stop_text;
  return out + OnFinish(index, choice);
}

Figures WriterBase::WithFault(const Figures& figures) const {
  Figures out = figures;
  if (out.parse_fault.empty()) out.parse_fault = parse_fault_;
  return out;
}

std::string SseEvent(std::string_view event, const OrderedJson& data) {
  std::string out;
  if (!event.empty()) out += "event: " + std::string(event) + "\n";
  return out + "data: " + Dump(data) + "\n\n";
}

double FiniteLogprob(double logprob) {
  return std::isfinite(logprob) ? logprob : -9999.0;
}

OrderedJson LogprobList(const std::vector<LogprobEntry>& logprobs) {
  OrderedJson list = OrderedJson::array();
  for (const LogprobEntry& entry : logprobs) {
    OrderedJson top = OrderedJson::array();
    for (const auto& [token, logprob] : entry.top) {
      top.push_back({{"token", token},
                     {"logprob", FiniteLogprob(logprob)},
                     {"bytes", BytesOf(token)}});
    }
    list.push_back({{"token", entry.token},
                    {"logprob", FiniteLogprob(entry.logprob)},
                    {"bytes", BytesOf(entry.token)},
                    {"top_logprobs", std::move(top)}});
  }
  return list;
}

}  // namespace hearth::serve
