// Items of /v1/responses: of a request, of earlier responses.
#pragma once

#include <string>

#include "serve/wire/common/conversation.h"
#include "serve/wire/parse.h"

namespace hearth::serve {

// Items that one answer is made of are one assistant turn again: thoughts, text
// and calls up to the next item that is none of these.
class ItemReader {
 public:
  ItemReader(Draft& draft, Conversation& conversation)
      : draft_(draft), conversation_(conversation) {}

  Checked Read(const OrderedJson& item, const std::string& path);
  void Flush();

 private:
  Checked ReadMessage(ObjectReader& reader, const std::string& path);
  Checked ReadReasoning(ObjectReader& reader, const std::string& path);
  Checked ReadCall(ObjectReader& reader, const std::string& path, bool custom);
  Checked ReadOutput(ObjectReader& reader, const std::string& path);

  Draft& draft_;
  Conversation& conversation_;
  AssistantTurn turn_;
  bool open_ = false;
  bool has_text_ = false;
};

// The item that an `item_reference` names, input or output of a stored
// response.
Parsed<OrderedJson> FindItem(const std::string& id,
                             const ParseContext& context);

// The ids of a response and of its items are made of the request's.
std::string ResponseIdOf(const std::string& item_id);

}  // namespace hearth::serve
