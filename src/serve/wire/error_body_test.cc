#include <gtest/gtest.h>

#include "serve/wire/request.h"

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

}  // namespace
}  // namespace hearth::serve
