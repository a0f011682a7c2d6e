#include "serve/http/request_parser.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

using State = RequestParser::State;

// Feeds pieces of `size` bytes; says how many bytes were taken in all.
std::size_t FeedAll(RequestParser& parser, std::string_view bytes,
                    std::size_t size) {
  std::size_t taken = 0;
  std::string held;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    held += bytes.substr(at, size);
    for (;;) {
      const std::size_t n = parser.Feed(held);
      held.erase(0, n);
      taken += n;
      if (n == 0 || held.empty()) break;
    }
  }
  return taken;
}

int StatusOf(std::string_view bytes, const HttpLimits& limits = {}) {
  RequestParser parser(limits);
  FeedAll(parser, bytes, bytes.size());
  return parser.state() == State::kBad ? parser.problem().status : 0;
}

constexpr std::string_view kPost =
    "POST /v1/chat/completions?a=b HTTP/1.1\r\nHost: localhost\r\n"
    "Content-Type: application/json\r\nContent-Length: 11\r\n\r\n"
    "{\"a\": \"b\"}\n";
constexpr std::string_view kChunked =
    "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "4;name=value\r\nWiki\r\n6\r\npedia!\r\n0\r\nTrailer: x\r\n\r\n";

TEST(RequestParserTest, EverySplitGivesTheSameRequest) {
  for (std::size_t size = 1; size <= kPost.size(); ++size) {
    RequestParser parser({});
    EXPECT_EQ(FeedAll(parser, kPost, size), kPost.size());
    ASSERT_EQ(parser.state(), State::kDone) << size;
    EXPECT_EQ(parser.request().method, "POST");
    EXPECT_EQ(parser.request().path, "/v1/chat/completions");
    EXPECT_EQ(parser.request().query, "a=b");
    EXPECT_EQ(parser.request().body, "{\"a\": \"b\"}\n");
    EXPECT_EQ(parser.request().Header("HOST"), "localhost");
    EXPECT_TRUE(parser.keep_alive());
  }
}

TEST(RequestParserTest, ChunksAreJoinedAndTrailersAreNoHeaders) {
  for (std::size_t size = 1; size <= kChunked.size(); ++size) {
    RequestParser parser({});
    EXPECT_EQ(FeedAll(parser, kChunked, size), kChunked.size()) << size;
    ASSERT_EQ(parser.state(), State::kDone) << size;
    EXPECT_EQ(parser.request().body, "Wikipedia!");
    EXPECT_EQ(parser.request().Find("trailer"), nullptr);
  }
}

TEST(RequestParserTest, ABodyOfNoChunks) {
  constexpr std::string_view kNone =
      "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
      "0\r\n\r\n";
  for (std::size_t size = 1; size <= kNone.size(); ++size) {
    RequestParser parser({});
    EXPECT_EQ(FeedAll(parser, kNone, size), kNone.size()) << size;
    EXPECT_EQ(parser.state(), State::kDone) << size;
  }
}

TEST(RequestParserTest, TheNextRequestIsLeftAlone) {
  for (const std::string_view one : {kPost, kChunked}) {
    RequestParser parser({});
    const std::string two = std::string(one) + std::string(kPost);
    std::size_t at = 0;
    while (parser.state() == State::kHead || parser.state() == State::kBody) {
      at += parser.Feed(std::string_view(two).substr(at));
    }
    EXPECT_EQ(parser.state(), State::kDone);
    EXPECT_EQ(at, one.size());
  }
}

TEST(RequestParserTest, TheHeadCanBeLookedAtBeforeTheBody) {
  RequestParser parser({});
  const std::size_t taken = parser.Feed(kPost);
  EXPECT_EQ(parser.state(), State::kBody);
  EXPECT_LT(taken, kPost.size());
  EXPECT_EQ(parser.request().path, "/v1/chat/completions");
}

TEST(RequestParserTest, WhatHasTwoReadingsIsRefused) {
  const std::string line = "POST / HTTP/1.1\r\nHost: a\r\n";
  for (const std::string& fields : std::vector<std::string>{
           "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
           "Content-Length: 3, 3\r\n\r\nabc",
           "Content-Length: +3\r\n\r\nabc",
           "Content-Length: -1\r\n\r\n",
           "Content-Length: 0x3\r\n\r\nabc",
           "Content-Length: 99999999999999999999\r\n\r\n",
           "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
           "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
           "Transfer-Encoding: xchunked\r\n\r\n",
           "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
           " Folded: x\r\n\r\n",
           "A: b\r\n c\r\n\r\n",
           "Host: b\r\n\r\n",
           "A: b\nC: d\r\n\r\n",
           "A: b\rC: d\r\n\r\n",
           "No colon\r\n\r\n",
           ": no name\r\n\r\n",
           std::string("A: \0\r\n\r\n", 8),
           "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
           "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
           "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"}) {
    EXPECT_EQ(StatusOf(line + fields), 400) << fields;
  }
}

TEST(RequestParserTest, FirstLines) {
  const std::string rest = "Host: a\r\n\r\n";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n" + rest), 0);
  EXPECT_EQ(StatusOf("\r\n\r\nGET / HTTP/1.1\r\n" + rest), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.0\r\n\r\n"), 0);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400);  // no Host
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n" + rest), 505);
  EXPECT_EQ(StatusOf("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), 505);
  EXPECT_EQ(StatusOf("GET http://a/ HTTP/1.1\r\n" + rest), 400);
  EXPECT_EQ(StatusOf("GET /a b HTTP/1.1\r\n" + rest), 400);
  EXPECT_EQ(StatusOf("GET /\xc3\xa4 HTTP/1.1\r\n" + rest), 400);
  EXPECT_EQ(StatusOf("G@T / HTTP/1.1\r\n" + rest), 400);
  EXPECT_EQ(StatusOf("\x16\x03\x01 TLS\r\n\r\n"), 400);
}

TEST(RequestParserTest, LimitsHoldForAnyPieces) {
  const HttpLimits small = {
      .head_bytes = 200, .target_bytes = 20, .body_bytes = 10};
  const std::string long_url =
      "GET /" + std::string(40, 'a') + " HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(StatusOf(long_url, small), 414);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(300, 'x'),
                     small),
            431);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: "
                     "11\r\n\r\n",
                     small),
            413);
  EXPECT_EQ(StatusOf("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                     "chunked\r\n\r\n6\r\nabcdef\r\n6\r\nabcdef\r\n",
                     small),
            413);
  // A refusal still knows whose it is.
  RequestParser parser(small);
  parser.Feed(
      "POST /api/chat HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n");
  EXPECT_EQ(parser.request().path, "/api/chat");
}

}  // namespace
}  // namespace hearth::serve
