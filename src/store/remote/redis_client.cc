#include "store/remote/redis_client.h"

#include <hiredis/hiredis.h>
#include <hiredis/read.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/words/printable.h"

namespace hearth {
namespace {

// Of replies that carry no value: "OK", an error's words.
constexpr std::size_t kSmallReplyBytesMax = 64 << 10;
constexpr std::size_t kReadBytes = 256 << 10;
// A line a node; slots that lie scattered make it long.
constexpr std::size_t kClusterNodesBytesMax = 1 << 20;

struct Reply {
  int type = REDIS_REPLY_NIL;
  std::string text;
  long long number = 0;
};

void* MakeText(const redisReadTask* task, char* text, std::size_t n) {
  return new Reply{task->type, std::string(text, n), 0};
}
// No command here is answered by an array, and its stated length would be
// allocated unseen: null refuses it.
void* MakeArray(const redisReadTask*, int) { return nullptr; }
void* MakeNumber(const redisReadTask* task, long long number) {
  return new Reply{task->type, "", number};
}
// Its task has the type that the value would have had.
void* MakeNil(const redisReadTask*) {
  return new Reply{REDIS_REPLY_NIL, "", 0};
}
void Free(void* reply) { delete static_cast<Reply*>(reply); }

redisReplyObjectFunctions kFunctions = {MakeText, MakeArray, MakeNumber,
                                        MakeNil, Free};

using Arguments = std::vector<std::string_view>;
using Replies = RedisClient::Replies;

Error ServerError(const std::string& text) {
  if (text.starts_with("CLUSTERDOWN ")) {
    return {Code::kIo, "the cluster is down: " + Printable(text)};
  }
  return {Code::kIo, "the server says: " + Printable(text)};
}

Result<void> AppendCommand(const Arguments& arguments, std::string& out) {
  std::vector<const char*> texts;
  std::vector<std::size_t> lengths;
  for (const std::string_view argument : arguments) {
    texts.push_back(argument.data());
    lengths.push_back(argument.size());
  }
  char* command = nullptr;
  const int n = redisFormatCommandArgv(&command, static_cast<int>(texts.size()),
                                       texts.data(), lengths.data());
  if (n < 0) return {Code::kResourceFull, "no memory for a command"};
  out.append(command, static_cast<std::size_t>(n));
  redisFreeCommand(command);
  return {};
}

}  // namespace

struct RedisClient::State {
  State(Socket to, RedisNode at)
      : socket(std::move(to)),
        node(std::move(at)),
        reader(redisReaderCreateWithFunctions(&kFunctions)) {}
  ~State() { redisReaderFree(reader); }

  Result<void> Send(const std::string& commands, Deadline deadline) {
    return socket.Write(AsBytes(commands), deadline);
  }

  // The next reply. `budget`: bytes that may still arrive.
  Result<Reply> Receive(std::size_t& budget, Deadline deadline) {
    if (reader == nullptr) return {Code::kResourceFull, "no memory"};
    while (true) {
      void* object = nullptr;
      if (redisReaderGetReply(reader, &object) != REDIS_OK) {
        return {Code::kCorrupt, std::string("not a Redis reply: ") +
                                    redisReaderGetError(reader)};
      }
      if (object != nullptr) {
        const std::unique_ptr<Reply> reply(static_cast<Reply*>(object));
        return std::move(*reply);
      }
      if (budget == 0)
        return {Code::kCorrupt, "more bytes than were asked for"};
      const std::span<std::byte> room =
          std::span(buffer).first(std::min(buffer.size(), budget));
      HEARTH_ASSIGN(const std::size_t n, socket.Read(room, deadline));
      budget -= n;
      if (redisReaderFeed(reader, reinterpret_cast<const char*>(buffer.data()),
                          n) != REDIS_OK) {
        return {Code::kResourceFull, "no memory for a reply"};
      }
    }
  }

  Result<Reply> Ask(const Arguments& arguments, Deadline deadline,
                    std::size_t budget = kSmallReplyBytesMax) {
    std::string command;
    HEARTH_TRY(AppendCommand(arguments, command));
    HEARTH_TRY(Send(command, deadline));
    HEARTH_ASSIGN(Reply reply, Receive(budget, deadline));
    if (reply.type == REDIS_REPLY_ERROR) return ServerError(reply.text);
    return reply;
  }

  // What becomes of a key's command, whose reply is of type `type` or nil.
  Result<RedisReply> ReceiveOfKey(int type, bool asking, std::size_t& budget,
                                  Deadline deadline) {
    if (asking) {
      HEARTH_ASSIGN(const Reply asked, Receive(budget, deadline));
      if (asked.type == REDIS_REPLY_ERROR) return ServerError(asked.text);
    }
    HEARTH_ASSIGN(Reply reply, Receive(budget, deadline));
    RedisReply out;
    if (reply.type == REDIS_REPLY_ERROR) {
      out.elsewhere = ParseRedirect(reply.text, node);
      if (!out.elsewhere.has_value()) return ServerError(reply.text);
    } else if (reply.type == type) {
      out.text = std::move(reply.text);
      out.number = reply.number;
    } else if (reply.type != REDIS_REPLY_NIL) {
      return {Code::kCorrupt, "a reply of another kind than expected"};
    }
    return out;
  }

  // One command for one key.
  Result<Replies> AskOfKey(const Arguments& arguments, int type, bool asking,
                           Deadline deadline) {
    std::string commands;
    if (asking) HEARTH_TRY(AppendCommand({"ASKING"}, commands));
    HEARTH_TRY(AppendCommand(arguments, commands));
    HEARTH_TRY(Send(commands, deadline));
    std::size_t budget = kSmallReplyBytesMax;
    HEARTH_ASSIGN(auto reply, ReceiveOfKey(type, asking, budget, deadline));
    return Replies{std::move(reply)};
  }

  Socket socket;
  const RedisNode node;
  redisReader* reader;
  std::vector<std::byte> buffer = std::vector<std::byte>(kReadBytes);
};

RedisClient::RedisClient(std::unique_ptr<State> state)
    : state_(std::move(state)) {}
RedisClient::~RedisClient() = default;

Result<std::unique_ptr<RedisClient>> RedisClient::Connect(const RemoteUrl& url,
                                                          Deadline deadline) {
  HEARTH_ASSIGN(Socket socket, Socket::Connect(url, deadline));
  auto state =
      std::make_unique<State>(std::move(socket), RedisNode{url.host, url.port});
  if (!url.password.empty()) {
    Arguments arguments = {"AUTH"};
    if (!url.user.empty()) arguments.push_back(url.user);
    arguments.push_back(url.password);
    HEARTH_TRY(state->Ask(arguments, deadline));
  }
  if (url.database != 0) {
    HEARTH_TRY(state->Ask({"SELECT", std::to_string(url.database)}, deadline));
  }
  return std::unique_ptr<RedisClient>(new RedisClient(std::move(state)));
}

Result<RedisClient::Replies> RedisClient::Get(std::span<const std::string> keys,
                                              std::size_t bytes_max,
                                              bool asking, Deadline deadline) {
  std::string commands;
  for (const std::string& key : keys) {
    if (asking) HEARTH_TRY(AppendCommand({"ASKING"}, commands));
    HEARTH_TRY(AppendCommand({"GET", key}, commands));
  }
  HEARTH_TRY(state_->Send(commands, deadline));
  std::size_t budget = bytes_max + kSmallReplyBytesMax;
  Replies replies;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    HEARTH_ASSIGN(auto reply, state_->ReceiveOfKey(REDIS_REPLY_STRING, asking,
                                                   budget, deadline));
    replies.push_back(std::move(reply));
  }
  return replies;
}

Result<RedisClient::Replies> RedisClient::Exists(const std::string& key,
                                                 bool asking,
                                                 Deadline deadline) {
  return state_->AskOfKey({"EXISTS", key}, REDIS_REPLY_INTEGER, asking,
                          deadline);
}

Result<RedisClient::Replies> RedisClient::Set(const std::string& key,
                                              ByteSpan value, bool asking,
                                              Deadline deadline) {
  return state_->AskOfKey({"SET", key, AsText(value)}, REDIS_REPLY_STATUS,
                          asking, deadline);
}

Result<std::string> RedisClient::ClusterNodes(Deadline deadline) {
  HEARTH_ASSIGN(Reply reply, state_->Ask({"CLUSTER", "NODES"}, deadline,
                                         kClusterNodesBytesMax));
  return std::move(reply.text);
}

}  // namespace hearth
