// Messages of /v1/chat/completions.
#pragma once

#include "serve/wire/common/conversation.h"
#include "serve/wire/json/object_reader.h"

namespace hearth::serve {

Checked ReadChatMessages(const OrderedJson& messages, Ignored& ignored,
                         Conversation& conversation);

}  // namespace hearth::serve
