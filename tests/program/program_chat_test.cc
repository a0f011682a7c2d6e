// hearth chat in a pseudo-terminal, as a user types into it.
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "program_testing.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

constexpr const char* kTemplate =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}";

// The program on a terminal of its own.
class Terminal {
 public:
  explicit Terminal(const std::string& command) {
    pid_ = ::forkpty(&fd_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      ::setenv("TERM", "xterm", 1);
      // Without a shell in between, which ctrl-C would end.
      const std::string line = "exec env " + command;
      ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      ::_exit(127);
    }
  }
  ~Terminal() {
    if (pid_ > 0) {  // 0 would be this test and all around it
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(fd_);
  }

  void Type(const std::string& text) {
    ASSERT_EQ(::write(fd_, text.data(), text.size()),
              static_cast<ssize_t>(text.size()));
  }

  // Reads until `text` has been shown after what was waited for before.
  testing::AssertionResult Shows(const std::string& text) {
    while (true) {
      const auto at = seen_.find(text, from_);
      if (at != std::string::npos) {
        from_ = at + text.size();
        return testing::AssertionSuccess();
      }
      char buffer[4096];
      if (!Readable()) break;
      const ssize_t n = ::read(fd_, buffer, sizeof(buffer));
      if (n <= 0) break;
      seen_.append(buffer, static_cast<std::size_t>(n));
    }
    return testing::AssertionFailure()
           << "\"" << text << "\" was not shown after:\n"
           << seen_;
  }

  // 128: a signal ended it, or it did not end.
  int ExitCode() {
    char buffer[4096];
    while (Readable()) {
      if (::read(fd_, buffer, sizeof(buffer)) > 0) continue;
      int status = 0;
      ::waitpid(pid_, &status, 0);
      pid_ = 0;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
    }
    return 128;
  }

 private:
  // Only a hanging program waits so long.
  bool Readable() {
    struct pollfd ready = {fd_, POLLIN, 0};
    return ::poll(&ready, 1, 120'000) > 0;
  }

  pid_t pid_ = 0;
  int fd_ = -1;
  std::string seen_;
  std::size_t from_ = 0;
};

class ProgramChat : public testing::Test {
 protected:
  std::string Command(const std::string& more) {
    std::ofstream(dir_.path() + "/t.jinja") << kTemplate;
    return ProgramCommand(dir_) + " chat " + kStories260K + " --template " +
           dir_.path() + "/t.jinja --temp 0 " + more;
  }
  TempDir dir_;
};

TEST_F(ProgramChat, LinesAreEditedAndRecalled) {
  Terminal terminal(Command("-n 3"));
  ASSERT_TRUE(terminal.Shows("/help lists"));
  ASSERT_TRUE(terminal.Shows("> "));
  // "helo", left, "l": the letter goes in before the last one.
  terminal.Type("helo\033[Dl\r");
  ASSERT_TRUE(terminal.Shows("cut after 3 tokens"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("\033[A");
  ASSERT_TRUE(terminal.Shows("hello"));
  terminal.Type("\003");
  ASSERT_TRUE(terminal.Shows("(/exit or ctrl-D leaves)"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("/undu\r");
  ASSERT_TRUE(terminal.Shows("did you mean /undo?"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("/undo\r");
  ASSERT_TRUE(terminal.Shows("taken back; 0 turns are left"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("/set temperature 0.5\r");
  ASSERT_TRUE(terminal.Shows("temperature 0.5,"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("\004");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST_F(ProgramChat, LongAndPastedTextIsOneMessage) {
  const std::string chat = dir_.path() + "/c.chat";
  Terminal terminal(Command("-n 1 --conversation " + chat));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("\033[200~first\rsecond \xc3\xa9\033[201~ third\r");
  ASSERT_TRUE(terminal.Shows("cut after 1 tokens"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("\"\"\"one\r");
  ASSERT_TRUE(terminal.Shows("| "));
  terminal.Type("two\"\"\"\r");
  ASSERT_TRUE(terminal.Shows("cut after 1 tokens"));
  ASSERT_TRUE(terminal.Shows("> "));
  // More than a terminal's own line of 4,095 bytes; nothing is computed for it.
  const std::string word(5000, 'x');
  terminal.Type("/system ");
  for (std::size_t at = 0; at < word.size(); at += 500) {
    terminal.Type(word.substr(at, 500));
  }
  terminal.Type(" end\r");
  ASSERT_TRUE(terminal.Shows("the system message is another now"));
  terminal.Type("/exit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
  const std::string kept = *ReadTextFile(chat);
  EXPECT_NE(kept.find("first\\nsecond \xc3\xa9 third"), std::string::npos);
  EXPECT_NE(kept.find("one\\ntwo"), std::string::npos);
  EXPECT_NE(kept.find(word + " end"), std::string::npos);
}

TEST_F(ProgramChat, AFullContextIsSaidAndShrinksOnlyWhenAllowed) {
  Terminal terminal(Command("-n 4 -c 64"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("Once upon a time there was a dog and a cat.\r");
  ASSERT_TRUE(terminal.Shows("cut after 4 tokens"));
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("And then the dog and the cat went to the park.\r");
  ASSERT_TRUE(terminal.Shows("/drop forgets the oldest turn"));
  ASSERT_TRUE(terminal.Shows("go on? [y/N]"));
  terminal.Type("n\r");
  ASSERT_TRUE(terminal.Shows("> "));
  terminal.Type("And then the dog and the cat went to the park.\r");
  ASSERT_TRUE(terminal.Shows("go on? [y/N]"));
  terminal.Type("y\r");
  ASSERT_TRUE(terminal.Shows("0 turns are left"));
  ASSERT_TRUE(terminal.Shows("cut after 4 tokens"));
  terminal.Type("\r/exit\r");
  EXPECT_EQ(terminal.ExitCode(), 0);
}

TEST_F(ProgramChat, WithoutATerminalLinesOfAnyLengthAreRead) {
  const std::string chat = dir_.path() + "/c.chat";
  const std::string word(10'000, 'y');
  std::ofstream(dir_.path() + "/in")
      << "/system " << word << "\n/nonsense\n/save " << dir_.path()
      << "/t.jinja\n";
  const std::string err = dir_.path() + "/err";
  const std::string command = Command("-n 1 --conversation " + chat) + " <" +
                              dir_.path() + "/in >/dev/null 2>" + err;
  ASSERT_EQ(std::system(command.c_str()), 0) << *ReadTextFile(err);
  EXPECT_NE(ReadTextFile(chat)->find(word), std::string::npos);
  EXPECT_NE(ReadTextFile(err)->find("no command /nonsense"), std::string::npos);
  // A file that is no conversation is not replaced by one.
  EXPECT_EQ(*ReadTextFile(dir_.path() + "/t.jinja"), kTemplate);
}

}  // namespace
}  // namespace hearth
