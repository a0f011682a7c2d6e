#include "serve/access/gate.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

using Headers = std::vector<HttpHeader>;

HttpRequest Ask(Headers headers, std::string path = "/v1/models") {
  HttpRequest request;
  request.method = "GET";
  request.path = std::move(path);
  request.headers = std::move(headers);
  return request;
}

class GateTest : public testing::Test {
 protected:
  // The status that a request gets; 0: it is let in.
  int Status(const HttpRequest& request, GateOptions options = {}) {
    if (options.bound.empty()) options.bound = {"127.0.0.1", "::1"};
    const Gate gate(std::move(options), *keys_);
    const auto error = gate.Check(request);
    return error.has_value() ? error->status : 0;
  }
  void WriteKeys(const std::string& text, mode_t mode = 0600) {
    std::ofstream(path(), std::ios::trunc) << text;
    ::chmod(path().c_str(), mode);
  }
  std::string path() const { return dir_.path() + "/keys"; }
  Result<std::unique_ptr<KeyRing>> OpenKeys() {
    return KeyRing::Open(path(), "",
                         [this](const std::string& note) { notes_ += note; });
  }

  TempDir dir_;
  std::string notes_;
  std::unique_ptr<KeyRing> keys_ =
      *KeyRing::Open("", "", [](const std::string&) {});
};

TEST_F(GateTest, OnlyTheServersOwnNames) {
  for (const char* host : {"localhost", "localhost:8080", "LOCALHOST:1",
                           "127.0.0.1:8080", "127.9.9.9", "[::1]:8080"}) {
    EXPECT_EQ(Status(Ask({{"Host", host}})), 0) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "127.evil.example",
        "127.0.0.1.evil.example:8080", "[::2]:8080", "192.168.0.1", ""}) {
    EXPECT_EQ(Status(Ask({{"Host", host}})), 403) << host;
  }
  GateOptions options;
  options.allow_hosts = {"hearth.lan"};
  EXPECT_EQ(Status(Ask({{"Host", "hearth.lan:8080"}}), options), 0);
  // For other machines: each address of this one, and still no other name.
  options.bound = {"0.0.0.0"};
  EXPECT_EQ(Status(Ask({{"Host", "192.168.0.1:8080"}}), options), 0);
  EXPECT_EQ(Status(Ask({{"Host", "evil.example"}}), options), 403);
}

TEST_F(GateTest, NoPageOfAnotherSite) {
  const HttpHeader host = {"Host", "localhost:8080"};
  EXPECT_EQ(Status(Ask({host, {"Origin", "http://localhost:8080"}})), 0);
  for (const char* origin :
       {"http://localhost:3000", "https://localhost:8080", "null",
        "http://evil.example", "http://localhost:8080.evil.example", ""}) {
    EXPECT_EQ(Status(Ask({host, {"Origin", origin}})), 403) << origin;
    EXPECT_EQ(Status(Ask({host, {"Origin", origin}}, "/health")), 403);
  }
  EXPECT_EQ(Status(Ask({host, {"Sec-Fetch-Site", "same-origin"}})), 0);
  EXPECT_EQ(Status(Ask({host, {"Sec-Fetch-Site", "none"}})), 0);
  EXPECT_EQ(Status(Ask({host, {"Sec-Fetch-Site", "cross-site"}})), 403);
  EXPECT_EQ(Status(Ask({host, {"Sec-Fetch-Site", "same-site"}})), 403);
  // What node's fetch sends.
  EXPECT_EQ(Status(Ask({host, {"Sec-Fetch-Mode", "cors"}})), 0);
  GateOptions options;
  options.allow_origins = {"https://good.example"};
  EXPECT_EQ(Status(Ask({host,
                        {"Origin", "https://good.example"},
                        {"Sec-Fetch-Site", "cross-site"}}),
                   options),
            0);
}

TEST_F(GateTest, KeysAreAskedForWhereThereAreSome) {
  WriteKeys("# mine\n\nalice  secret-of-alice\nbob secret-of-bob\n");
  keys_ = *OpenKeys();
  const HttpHeader host = {"Host", "localhost"};
  EXPECT_EQ(Status(Ask({host})), 401);
  EXPECT_EQ(Status(Ask({host}, "/health")), 0);
  EXPECT_EQ(Status(Ask({host, {"Authorization", "Bearer secret-of-alice"}})),
            0);
  EXPECT_EQ(Status(Ask({host, {"authorization", "bearer secret-of-bob"}})), 0);
  EXPECT_EQ(Status(Ask({host, {"x-api-key", "secret-of-bob"}})), 0);
  for (const char* wrong : {"Bearer secret-of-alic", "Bearer secret-of-alicee",
                            "Bearer ", "secret-of-alice", "Basic x"}) {
    EXPECT_EQ(Status(Ask({host, {"Authorization", wrong}})), 401) << wrong;
  }
  const Gate gate({.bound = {"127.0.0.1"}}, *keys_);
  EXPECT_EQ(gate.ClientOf(Ask({{"x-api-key", "secret-of-bob"}})), "bob");
  EXPECT_EQ(gate.SpaceOf("bob"), "bob");
  const Gate sharing({.bound = {"127.0.0.1"}, .share_cache = true}, *keys_);
  EXPECT_EQ(sharing.SpaceOf("bob"), "");
}

TEST_F(GateTest, KeyFilesThatCannotBe) {
  for (const char* text : {"", "# only this\n", "alice\n", "alice short\n",
                           "alice long-enough more\n",
                           "alice long-enough\nalice long-enough-too\n"}) {
    WriteKeys(text);
    EXPECT_FALSE(OpenKeys().ok()) << text;
  }
  for (const mode_t mode : {0640, 0604, 0660, 0620}) {
    WriteKeys("alice long-enough\n", mode);
    const auto keys = OpenKeys();
    ASSERT_FALSE(keys.ok());
    EXPECT_NE(keys.error().message.find("chmod 600"), std::string::npos);
  }
}

TEST_F(GateTest, AChangedFileCountsWhenItCanBeUsed) {
  WriteKeys("alice first-secret\n");
  keys_ = *OpenKeys();
  WriteKeys("alice second-secret\n");
  keys_->Reload();
  EXPECT_FALSE(keys_->NameOf("first-secret").has_value());
  EXPECT_EQ(keys_->NameOf("second-secret"), "alice");
  EXPECT_EQ(notes_, "");
  WriteKeys("broken\n");
  keys_->Reload();
  EXPECT_EQ(keys_->NameOf("second-secret"), "alice");
  EXPECT_NE(notes_.find("line 1"), std::string::npos);
}

}  // namespace
}  // namespace hearth::serve
