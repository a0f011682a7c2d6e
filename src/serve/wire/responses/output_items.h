// The output of a response while it grows: items, and the events that tell of
// them. The final response has the very items that were streamed.
#pragma once

#include <string>

#include "serve/wire/responses/notes.h"
#include "serve/wire/writer/writer_base.h"

namespace hearth {
class Vault;
}

namespace hearth::serve {

class OutputItems {
 public:
  OutputItems(const ResponsesNotes& notes, const std::string& request_id,
              bool stream, bool logprobs, const Vault* vault)
      : notes_(notes),
        request_id_(request_id),
        stream_(stream),
        logprobs_(logprobs),
        vault_(vault) {}

  std::string Reasoning(const std::string& text);
  std::string Text(const std::string& text,
                   const std::vector<LogprobEntry>& logprobs);
  std::string BeginCall(const WrittenCall& call);
  std::string Arguments(const std::string& text);
  // The open item is over; `whole`: not cut short.
  std::string Close(bool whole);

  // An event with the next sequence number; empty unless streamed.
  std::string Send(const char* type, OrderedJson members);
  const OrderedJson& items() const { return items_; }

 private:
  enum class Open { kNone, kReasoning, kMessage, kCall };
  std::string Start(Open kind, OrderedJson item);
  std::string Part(const char* type, const char* place, OrderedJson part);
  std::string Piece(const char* type, const char* place, OrderedJson members);
  std::string CloseReasoning();
  std::string CloseMessage();
  std::string CloseCall();
  std::string NewId(const char* prefix) const;
  OrderedJson& item() { return items_.back(); }

  const ResponsesNotes& notes_;
  const std::string request_id_;
  const bool stream_, logprobs_;
  const Vault* vault_;
  OrderedJson items_ = OrderedJson::array();
  Open open_ = Open::kNone;
  std::string grown_;
  WrittenCall call_;  // the open one
  OrderedJson grown_logprobs_ = OrderedJson::array();
  int sequence_number_ = 0;
};

}  // namespace hearth::serve
