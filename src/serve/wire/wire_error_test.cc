#include "serve/wire/wire_error.h"

#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

TEST(ErrorBody, HasTheFormOfItsDialect) {
  const WireError error = {.status = 400,
                           .type = "invalid_request_error",
                           .code = "context_length_exceeded",
                           .param = "messages",
                           .message = "too long"};
  EXPECT_EQ(ErrorBody(Dialect::kChat, error, "req_1"),
            R"({"error":{"message":"too long","type":"invalid_request_error",)"
            R"("param":"messages","code":"context_length_exceeded"}})");
  EXPECT_EQ(ErrorBody(Dialect::kMessages, error, "req_1"),
            R"({"type":"error","error":{"type":"invalid_request_error",)"
            R"("message":"too long"},"request_id":"req_1"})");
  EXPECT_EQ(ErrorBody(Dialect::kOllamaChat, error, "req_1"),
            R"({"error":"too long"})");
}

TEST(ErrorBody, IsJsonWhateverTheTextHolds) {
  const WireError error = {.message = "\xff"};
  EXPECT_EQ(ErrorBody(Dialect::kOllamaChat, error, ""),
            "{\"error\":\"\xef\xbf\xbd\"}");
}

TEST(ContextExceeded, IsInTheWordsThatClientsLookFor) {
  const WireError chat = ContextExceeded(Dialect::kChat, 9000, 8192);
  EXPECT_EQ(chat.status, 400);
  EXPECT_EQ(chat.code, "context_length_exceeded");
  EXPECT_EQ(chat.message,
            "This model's maximum context length is 8192 tokens. However, your "
            "messages resulted in 9000 tokens.");
  EXPECT_EQ(ContextExceeded(Dialect::kMessages, 9000, 8192).message,
            "prompt is too long: 9000 tokens > 8192 maximum");
}

}  // namespace
}  // namespace hearth::serve
