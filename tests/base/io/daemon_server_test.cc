// SPDX-License-Identifier: Apache-2.0
// A unit and who asks it, over a real Unix socket, with a shell as the daemon; what is wrong is
// said as text, written here.
#include "base/io/daemon_server.h"

#include "base/io/files.h"
#include "base/io/json_lines.h"
#include "base/io/unix_client.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

namespace muster::io {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

/// Waits for a signal, and says which came.
constexpr const char* kObedient =
    "trap 'echo hup >>heard' HUP; trap 'echo term >>heard; exit 0' TERM; echo ready >>heard; "
    "while :; do sleep 1000 & wait $!; done";

bool lives(pid_t pid) { return ::kill(pid, 0) == 0; }

class DaemonServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unit_ = {"muster-test", folder_ / "socket", folder_ / "own", ::geteuid()};
    std::filesystem::create_directory(unit_.folder);
    daemon_.name = "shell";
    runs(kObedient);
    daemon_.check = [](const std::string& name, const std::string& text) -> Result<void> {
      if (name == "conf" && text.starts_with("good")) return {};
      if (name == "leases") return {};
      return fail(ErrorCode::InvalidInput, "line 1: not taken");
    };
    daemon_.needed = {"conf"};
    daemon_.first = {"leases"};
    daemon_.removed = {"heard"};
    options_.folder = unit_.folder;
    options_.grace = 200ms;
    options_.idle = 50ms;
    listening_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, unit_.socket.c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(listening_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    ASSERT_EQ(::listen(listening_.get(), 8), 0);
  }
  void TearDown() override { EXPECT_TRUE(!served_ || *served_) << served_->error().str(); }
  void runs(const char* script) {
    daemon_.command.program = "sh";
    daemon_.command.args = {"-c", script};
  }
  /// Beside the test, until it has been idle; joined at the end of the scope.
  std::jthread server() {
    return std::jthread([this] { served_ = serveDaemon(listening_.get(), daemon_, options_); });
  }
  Result<std::unique_ptr<Child>> start() const { return startInUnit(unit_, {{"conf", "good"}}); }
  static bool becomes(const std::function<bool()>& condition) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(5ms);
    }
    return true;
  }
  std::string heard() const { return readFile(unit_.folder / "heard").value_or(""); }
  Fd dialed() const {
    auto fd = dialUnixSocket(unit_.socket);
    EXPECT_TRUE(fd) << fd.error().str();
    return fd ? std::move(*fd) : Fd();
  }

  muster::test::TempFolder folder_;
  DaemonUnit unit_;
  ServedDaemon daemon_;
  DaemonServerOptions options_;
  Fd listening_;
  std::optional<Result<void>> served_;
};

TEST_F(DaemonServerTest, runsWhileWhoAskedKeepsItAndTellsItToReadAgain) {
  const auto unit = server();
  auto child = start();
  ASSERT_TRUE(child) << child.error().str();
  const auto pid = (*child)->pid();
  EXPECT_TRUE((*child)->running());
  EXPECT_EQ(readFile(unit_.folder / "conf").value_or(""), "good");
  ASSERT_TRUE(becomes([&] { return heard() == "ready\n"; }));
  (*child)->signal(SIGHUP);
  EXPECT_TRUE(becomes([&] { return heard() == "ready\nhup\n"; })) << heard();
  EXPECT_TRUE((*child)->running());
  child->reset();
  EXPECT_FALSE(lives(pid)) << "who lets it go waits for its end: the next one wants its ports";
  EXPECT_EQ(heard(), "ready\nhup\nterm\n");
}

TEST_F(DaemonServerTest, whoIsKilledTakesItAlong) {
  const auto unit = server();
  pid_t pid = 0;
  {
    const auto line = dialed();
    ASSERT_TRUE(sendJsonLine(line.get(), {{"start", {{"conf", "good"}}}}, 1s));
    LineReader answers(line.get(), 4096);
    const auto answer = answers.next(10s);
    ASSERT_TRUE(answer) << answer.error().str();
    ASSERT_EQ(std::sscanf(answer->c_str(), "{\"pid\":%d}", &pid), 1) << *answer;
    EXPECT_TRUE(lives(pid));
  }  // as the kernel ends the connections of a process
  EXPECT_TRUE(becomes([pid] { return !lives(pid); }));
}

TEST_F(DaemonServerTest, oneThatDoesNotObeyIsKilled) {
  runs("trap '' TERM; echo ready >>heard; while :; do sleep 1000 & wait $!; done");
  const auto unit = server();
  auto child = start();
  ASSERT_TRUE(child) << child.error().str();
  ASSERT_TRUE(becomes([&] { return heard() == "ready\n"; }));
  const auto pid = (*child)->pid();
  child->reset();
  EXPECT_TRUE(becomes([pid] { return !lives(pid); }));
}

TEST_F(DaemonServerTest, anotherMusterIsRefusedWhileTheFirstKeepsItAndWaitsForItsEnd) {
  const auto unit = server();
  auto first = start();
  ASSERT_TRUE(first) << first.error().str();
  const auto second = start();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::Conflict);
  EXPECT_THAT(second.error().str(), HasSubstr(std::to_string((*first)->pid())));
  EXPECT_TRUE((*first)->running()) << "nobody takes it away";
  const auto pid = (*first)->pid();
  first->reset();
  const auto third = start();
  ASSERT_TRUE(third) << third.error().str();
  EXPECT_FALSE(lives(pid));
  EXPECT_TRUE((*third)->running());
}

TEST_F(DaemonServerTest, lastWordsOfOneThatEndsComeBack) {
  runs("echo 'cannot bind port 67' >&2; exit 3");
  const auto unit = server();
  auto child = start();
  ASSERT_TRUE(child) << child.error().str();
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(becomes([&] { return !(*child)->running(); }));
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("code 3: cannot bind port 67"));
  const auto again = start();
  EXPECT_TRUE(again) << "its unit is still there";
}

TEST_F(DaemonServerTest, aFileThatIsRefusedChangesNothing) {
  const auto unit = server();
  for (const DaemonFiles& files :
       {DaemonFiles{{"conf", "bad"}}, DaemonFiles{{"conf", "good"}, {"../conf", "good"}},
        DaemonFiles{{"conf", "good"}, {"other", "good"}}, DaemonFiles{{"leases", ""}}}) {
    const auto child = startInUnit(unit_, files);
    ASSERT_FALSE(child);
    EXPECT_EQ(child.error().code(), ErrorCode::InvalidInput);
    EXPECT_TRUE(std::filesystem::is_empty(unit_.folder)) << child.error().str();
  }
}

TEST_F(DaemonServerTest, whatItHasWrittenItselfIsKept) {
  const auto unit = server();
  const DaemonFiles files{{"conf", "good"}, {"leases", "of before"}};
  ASSERT_TRUE(startInUnit(unit_, files));
  EXPECT_EQ(readFile(unit_.folder / "leases").value_or(""), "of before");
  ASSERT_TRUE(writeFileAtomic(unit_.folder / "leases", "its own"));
  ASSERT_TRUE(startInUnit(unit_, files));
  EXPECT_EQ(readFile(unit_.folder / "leases").value_or(""), "its own");
}

TEST_F(DaemonServerTest, oneThatOutlivesWhoAskedStaysUntilItIsStopped) {
  daemon_.ends_with_asker = false;
  const auto unit = server();
  const auto started = askDaemonUnit(unit_, {{"start", {{"conf", "good"}}}});
  ASSERT_TRUE(started) << started.error().str();
  const auto pid = started->at("pid").get<pid_t>();
  ASSERT_TRUE(becomes([&] { return heard() == "ready\n"; }));
  ASSERT_TRUE(askDaemonUnit(unit_, {{"write", {{"conf", "good, and new"}}}}));
  ASSERT_TRUE(askDaemonUnit(unit_, {{"signal", "hup"}}));
  EXPECT_TRUE(becomes([&] { return heard() == "ready\nhup\n"; })) << heard();
  EXPECT_EQ(readFile(unit_.folder / "conf").value_or(""), "good, and new");
  EXPECT_FALSE(askDaemonUnit(unit_, {{"write", {{"conf", "bad"}}}}));
  EXPECT_TRUE(lives(pid));
  const auto anew = askDaemonUnit(unit_, {{"start", {{"conf", "good"}}}});
  ASSERT_TRUE(anew) << anew.error().str();
  EXPECT_FALSE(lives(pid)) << "one at a time";
  ASSERT_TRUE(askDaemonUnit(unit_, {{"stop", true}}));
  EXPECT_FALSE(lives(anew->at("pid").get<pid_t>()));
  ASSERT_TRUE(askDaemonUnit(unit_, {{"stop", true}})) << "a second time, too";
  EXPECT_FALSE(askDaemonUnit(unit_, {{"signal", "hup"}}));
}

TEST_F(DaemonServerTest, halfAndBrokenRequestsDoNotDisturbTheDaemon) {
  const auto unit = server();
  auto child = start();
  ASSERT_TRUE(child) << child.error().str();
  const std::vector<std::string> broken{
      "{\"start\": {\"conf\"",          "\n\n\n",
      std::string(100'000, '[') + "\n", "null\n",
      "{\"start\": [\"conf\"]}\n",      "{\"write\": {\"conf\": 3}}\n",
      "{\"signal\": \"kill\"}\n",       "{\"stop\": true, \"start\": {}}\n",
      std::string("\x80\xff\n")};
  for (const auto& text : broken) {
    const auto line = dialed();
    ASSERT_EQ(::send(line.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
    ::shutdown(line.get(), SHUT_WR);
    LineReader answers(line.get(), 4096);
    for (Result<std::string> answer = answers.next(10s); answer; answer = answers.next(10s))
      EXPECT_THAT(*answer, HasSubstr("\"error\"")) << text.substr(0, 60);
  }
  EXPECT_TRUE((*child)->running());
}

TEST_F(DaemonServerTest, nobodyElseMayAskAndNobodyElsesSocketIsAsked) {
  options_.asker = ::geteuid() + 1;
  const auto unit = server();
  const auto refused = start();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), ErrorCode::Denied);
  auto strange = unit_;
  strange.owner = ::geteuid() + 1;
  const auto not_believed = startInUnit(strange, {{"conf", "good"}});
  ASSERT_FALSE(not_believed);
  EXPECT_EQ(not_believed.error().code(), ErrorCode::Denied);
}

/// Reads why, and then an end, not a reset.
void expectRefused(int fd, const char* why) {
  LineReader lines(fd, 1 << 20);
  EXPECT_THAT(lines.next(20s).value_or(""), HasSubstr(why));
  char byte = 0;
  pollfd wait{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&wait, 1, 20'000), 1);
  EXPECT_EQ(::read(fd, &byte, 1), 0) << std::strerror(errno) << ", not an end";
}

TEST_F(DaemonServerTest, whoIsRefusedReadsWhyWhateverHeSendsBefore) {
  options_.asker = ::geteuid() + 1;
  {
    const auto line = dialed();  // while nobody answers yet: it is there before it is refused
    ASSERT_TRUE(sendJsonLine(line.get(), {{"start", {{"conf", "good"}}}}, 1s));
    const auto unit = server();
    expectRefused(line.get(), "may not ask");
  }
  EXPECT_TRUE(served_ && *served_) << "nobody who was refused keeps it";
}

TEST_F(DaemonServerTest, whoIsOneTooManyReadsIt) {
  ASSERT_EQ(::listen(listening_.get(), 32), 0);
  std::jthread unit;  // joined when the lines have ended
  std::vector<Fd> lines;
  for (int each = 0; each < 17; ++each) {
    lines.push_back(dialed());
    ASSERT_TRUE(sendJsonLine(lines.back().get(), {{"signal", "hup"}}, 1s));
  }
  unit = server();
  expectRefused(lines.back().get(), "too many connections");
  LineReader first(lines.front().get(), 4096);
  EXPECT_THAT(first.next(20s).value_or(""), HasSubstr("does not run"));
}

TEST_F(DaemonServerTest, whoeverSaysTooMuchReadsIt) {
  const auto unit = server();
  const auto line = dialed();
  const std::string piece(1u << 20, 'x');
  std::jthread talks([&] {
    for (std::size_t sent = 0; sent < 24 * piece.size();) {
      const auto now = ::send(line.get(), piece.data(), piece.size(), MSG_NOSIGNAL);
      if (now < 0 && errno != EAGAIN) return;
      pollfd wait{line.get(), POLLOUT, 0};
      if (now < 0)
        ::poll(&wait, 1, 1'000);
      else
        sent += static_cast<std::size_t>(now);
    }
  });
  expectRefused(line.get(), "a line has more than");
}

TEST_F(DaemonServerTest, whereNobodyListensItSaysWhatToDo) {
  auto away = unit_;
  away.socket = folder_ / "away";
  const auto child = startInUnit(away, {{"conf", "good"}});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code(), ErrorCode::Unavailable);
  EXPECT_THAT(child.error().str(), HasSubstr("systemctl enable --now muster-test.socket"));
}

TEST_F(DaemonServerTest, aUnitThatEndsIsTheEndOfItsDaemon) {
  std::unique_ptr<Child> child;
  {
    // Another program in the unit's place.
    const std::jthread other([this] {
      const Fd line(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      LineReader asked(line.get(), 4096);
      (void)asked.next(10s);
      (void)sendJsonLine(line.get(), {{"pid", 1}}, 1s);
    });
    auto started = start();
    ASSERT_TRUE(started) << started.error().str();
    child = std::move(*started);
  }
  EXPECT_TRUE(becomes([&] { return !child->running(); }));
}

}  // namespace
}  // namespace muster::io
