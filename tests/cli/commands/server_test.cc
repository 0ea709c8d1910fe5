// SPDX-License-Identifier: Apache-2.0
// muster server as the real program: what systemd hears, signals, kill -9, tokens beside it.
#include "cli/commands/server.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "tests/cli/muster_folder.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>

namespace muster::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

using Steady = std::chrono::steady_clock;
/// When a server that has not shown something will not show it any more, on a slow machine too.
Steady::time_point inAWhile() { return Steady::now() + std::chrono::seconds(90); }

/// What sd_notify(3) sends to.
class NotifySocket {
 public:
  explicit NotifySocket(const std::filesystem::path& path)
      : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof address.sun_path, "%s", path.c_str());
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    const timeval limit{60, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  std::string next() {
    char text[4096];
    const auto size = ::recv(socket_.get(), text, sizeof text, 0);
    return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : "(nothing)";
  }

 private:
  io::Fd socket_;
};

class Server : public ::testing::Test {
 protected:
  pid_t start(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"server",   "--api-only",
                                   "--socket", socket().string(),
                                   "--access", (folder_ / "access.conf").string()};
    words.insert(words.end(), more.begin(), more.end());
    auto command = folder_.command(words);
    const auto pid = ::fork();
    if (pid == 0) {
      for (const auto& [name, value] : command.env) ::setenv(name.c_str(), value.c_str(), 1);
      ::setenv("NOTIFY_SOCKET", (folder_ / "notify").c_str(), 1);
      ::setenv("WATCHDOG_USEC", "1500000", 1);
      ::unsetenv("WATCHDOG_PID");
      if (!std::freopen((folder_ / "stderr").c_str(), "a", stderr)) ::_exit(126);
      std::vector<char*> argv{command.program.data()};
      for (auto& word : command.args) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(command.program.c_str(), argv.data());
      ::_exit(127);
    }
    started_.insert(pid);
    return pid;
  }
  std::filesystem::path socket() const { return folder_ / "api.sock"; }
  nlohmann::json ask(const std::string& target, std::vector<std::string> words = {}) {
    words.insert(words.begin(), {"-sS", "--max-time", "20", "--unix-socket", socket().string()});
    words.push_back("http://localhost" + target);
    const auto said = io::runBlocking({"curl", words});
    auto json = said ? jsonOrNone(said->out, kServerJson) : nlohmann::json();
    return json.is_object() ? json : nlohmann::json::object();
  }
  void TearDown() override {
    for (const auto pid : std::set(started_)) end(pid, SIGKILL);
  }
  int end(pid_t pid, int signal) {
    ::kill(pid, signal);
    int status = 0;
    ::waitpid(pid, &status, 0);
    started_.erase(pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  std::set<pid_t> started_;
  test::MusterFolder folder_;
  NotifySocket notify_{folder_ / "notify"};
};

TEST_F(Server, tellsSystemdAndEndsAsAsked) {
  const auto pid = start();
  EXPECT_THAT(notify_.next(), StartsWith("READY=1\nSTATUS=answers on "));
  EXPECT_EQ(ask("/api/v1/site")["name"], "small");
  EXPECT_EQ(notify_.next(), "WATCHDOG=1");
  EXPECT_EQ(notify_.next(), "WATCHDOG=1");
  EXPECT_EQ(end(pid, SIGTERM), kOk);
  std::string last;
  while ((last = notify_.next()) == "WATCHDOG=1") {
  }
  EXPECT_EQ(last, "STOPPING=1");
  EXPECT_FALSE(std::filesystem::exists(socket()));
}

TEST_F(Server, aSecondOneSaysWhoAnswersAndAKilledOneIsFollowed) {
  const auto first = start();
  EXPECT_THAT(notify_.next(), StartsWith("READY=1"));
  const auto second = folder_.muster({"server", "--api-only", "--socket", socket().string()});
  EXPECT_EQ(second.code, kFailed);
  EXPECT_THAT(second.err, HasSubstr("another server answers on " + socket().string()));
  EXPECT_EQ(end(first, SIGKILL), 128 + SIGKILL);
  EXPECT_TRUE(std::filesystem::is_socket(socket())) << "it was left";
  const auto third = start();
  std::string said;
  while ((said = notify_.next()) == "WATCHDOG=1") {
  }
  EXPECT_THAT(said, StartsWith("READY=1"));
  EXPECT_EQ(ask("/api/v1/me")["role"], "admin");
  EXPECT_EQ(end(third, SIGTERM), kOk);
}

TEST_F(Server, readsTheInventoryAgainOnSighup) {
  const auto pid = start();
  notify_.next();
  EXPECT_EQ(ask("/api/v1/nodes")["total"], 2);
  folder_.write(
      "cluster.yaml",
      std::string(test::MusterFolder::kInventory) +
          R"(  - {names: gpu003, profile: gpu-node, mac: "52:54:00:20:00:03", address: 10.20.1.3, bmc: "https://10.20.250.3", rack: r1, unit: 14}
)");
  EXPECT_EQ(ask("/api/v1/inventory")["file_differs"], true);
  EXPECT_EQ(ask("/api/v1/nodes")["total"], 2) << "not before it is asked to";
  ::kill(pid, SIGHUP);
  nlohmann::json total;
  for (const auto limit = inAWhile(); total != 3 && Steady::now() < limit;)
    total = ask("/api/v1/nodes")["total"];
  EXPECT_EQ(total, 3);
  EXPECT_EQ(end(pid, SIGINT), kOk);
}

TEST_F(Server, tokensAreMadeBesideIt) {
  const auto pid = start({"--listen", "127.0.0.1:0"});
  notify_.next();
  const auto made = folder_.muster({"token", "create", "ci", "--role", "robot", "--racks", "r1"});
  ASSERT_EQ(made.code, kOk) << made.err;
  const auto secret = made.out.substr(0, made.out.size() - 1);
  EXPECT_THAT(secret, StartsWith("muster_"));
  auto me = ask("/api/v1/me", {"-H", "Authorization: Bearer " + secret});
  EXPECT_EQ(me["principal"], "token:ci") << "at once";
  EXPECT_EQ(me["role"], "robot");
  const auto listed = folder_.muster({"token", "list"});
  EXPECT_THAT(listed.out, HasSubstr("racks=r1"));
  EXPECT_THAT(listed.out, ::testing::Not(HasSubstr(secret)));
  EXPECT_EQ(folder_.muster({"token", "create", "ci"}).code, kFailed) << "a name is one token's";
  EXPECT_EQ(folder_.muster({"token", "revoke", "ci"}).code, kOk);
  for (const auto limit = inAWhile(); me.value("status", 0) != 401 && Steady::now() < limit;)
    me = ask("/api/v1/me", {"-H", "Authorization: Bearer " + secret});
  EXPECT_EQ(me["code"], "unauthenticated");
  EXPECT_EQ(end(pid, SIGTERM), kOk);
}

/// It would be good for three months, and shown to nobody.
TEST_F(Server, aTokenThatCouldNotBeShownIsRevoked) {
  for (const auto* more : {"", " --json"}) {
    auto command =
        folder_.command({"-c", std::string("exec \"$0\" token create ci >/dev/full") + more,
                         (test::binFolder() / "muster").string()});
    command.program = "bash";
    const auto ended = io::runBlocking(std::move(command));
    ASSERT_TRUE(ended) << ended.error().str();
    EXPECT_EQ(ended->code, kFailed) << ended->err;
    EXPECT_THAT(ended->err, HasSubstr("is revoked: create it anew"));
    EXPECT_THAT(ended->err, ::testing::Not(HasSubstr("muster_")));
  }
  for (const auto* line : {"exec \"$0\" token create shut >&-",
                           "exec 3> >(:); wait $!; exec \"$0\" token create piped >&3"}) {
    auto command = folder_.command({"-c", line, (test::binFolder() / "muster").string()});
    command.program = "bash";
    const auto ended = io::runBlocking(std::move(command));
    ASSERT_TRUE(ended) << ended.error().str();
    EXPECT_EQ(ended->code, kFailed) << line << ended->err;
  }
  const auto listed = folder_.muster({"token", "list"});
  EXPECT_THAT(listed.out, ::testing::Not(HasSubstr("counts"))) << listed.out;
  EXPECT_EQ(folder_.muster({"token", "create", "ci"}).code, kOk) << "the name is free again";
}

/// A backup is restored while the server answers: it goes on with the store that is there.
TEST_F(Server, opensAStoreThatReplacesItsOwn) {
  ASSERT_EQ(folder_.muster({"token", "create", "old"}).code, kOk);
  const auto pid = start();
  notify_.next();
  EXPECT_EQ(ask("/api/v1/tokens")["items"].size(), 1u);
  const auto aside = folder_ / "aside";
  std::filesystem::rename((folder_ / "state"), aside);
  for (const auto limit = inAWhile();
       ask("/api/v1/findings").value("status", 200) == 200 && Steady::now() < limit;) {
  }
  EXPECT_FALSE(std::filesystem::exists((folder_ / "state"))) << "a new store is nobody's wish";
  // As it was when its backup was made, plus one.
  const auto copy = folder_ / "copy";
  std::filesystem::copy(aside, copy, std::filesystem::copy_options::recursive);
  std::filesystem::rename(copy, (folder_ / "state"));
  const auto made = folder_.muster({"token", "create", "new"});
  ASSERT_EQ(made.code, kOk) << made.err;
  nlohmann::json tokens;
  for (const auto limit = inAWhile(); tokens.size() != 2 && Steady::now() < limit;)
    tokens = ask("/api/v1/tokens").value("items", nlohmann::json::array());
  EXPECT_EQ(tokens.size(), 2u);
  EXPECT_EQ(ask("/api/v1/findings").value("status", 200), 200);
  EXPECT_EQ(ask("/api/v1/nodes")["total"], 2);
  EXPECT_EQ(folder_.muster({"token", "revoke", "old"}).code, kOk) << "its files are whole";
  EXPECT_EQ(end(pid, SIGTERM), kOk);
}

TEST_F(Server, saysWhatIsWrongWithItsOptions) {
  const auto listen =
      folder_.muster({"server", "--api-only", "--socket", socket().string(), "--listen", "8443"});
  EXPECT_EQ(listen.code, kFailed);
  EXPECT_THAT(listen.err, HasSubstr("ADDRESS:PORT"));
  folder_.write("access.conf", "user anna king\n");
  ASSERT_EQ(::chmod((folder_ / "access.conf").c_str(), 0666), 0);
  const auto access = folder_.muster({"server", "--api-only", "--socket", socket().string(),
                                      "--access", (folder_ / "access.conf").string()});
  EXPECT_EQ(access.code, kFailed);
  EXPECT_THAT(access.err, HasSubstr("chmod 644"));
}

/// A start at night is not ended by a word in one row, and whoever looks at the journal, at status
/// or at the API reads which.
TEST_F(Server, saysOnItsStandardErrorWhichRowOfTheAccessFileIsWrong) {
  const auto err = [&] { return io::readFile(folder_ / "stderr").value_or(""); };
  const auto waitFor = [&](const std::string& text) {
    for (const auto limit = inAWhile(); err().find(text) == std::string::npos;)
      if (Steady::now() > limit) break;
    EXPECT_THAT(err(), HasSubstr(text));
  };
  folder_.write("access.conf", "user anna king\n");
  const auto pid = start();
  notify_.next();
  waitFor("access.conf:1:1: \"king\" is no role");
  EXPECT_THAT(jsonText(ask("/api/v1/site")["access_problems"]), HasSubstr("access.conf:1:1"));
  folder_.write("access.conf", "user anna viewer\n");
  waitFor("the access file is right now");
  folder_.write("access.conf", "user anna viewer\nuser ben\n");
  waitFor("access.conf:2:1: a row is");
  EXPECT_EQ(end(pid, SIGTERM), kOk);
}

}  // namespace
}  // namespace muster::cli
