// SPDX-License-Identifier: Apache-2.0
// Commands beside a server, as the real programs: who answers them, also for users who may read
// neither the state folder nor a secret.
#include "base/io/files.h"
#include "base/json_input.h"
#include "tests/cli/muster_folder.h"

#include <nlohmann/json.hpp>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <future>
#include <thread>

namespace muster::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

using test::kFailed;
using test::kOk;
using test::kUsage;

constexpr const char* kOtherUser = "65534";  ///< a uid that owns nothing here

class ServerClients : public ::testing::Test {
 protected:
  void start() {
    auto command = folder_.command({"server", "--api-only", "--socket", socket().string(),
                                    "--access", (folder_ / "access.conf").string()});
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::filesystem::remove(folder_ / "notify");  // of a start before
    const io::Fd notify(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    std::strncpy(address.sun_path, (folder_ / "notify").c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(::bind(notify.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    const timeval limit{60, 0};
    ::setsockopt(notify.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    server_ = ::fork();
    if (server_ == 0) {
      for (const auto& [name, value] : command.env) ::setenv(name.c_str(), value.c_str(), 1);
      ::setenv("NOTIFY_SOCKET", (folder_ / "notify").c_str(), 1);
      std::vector<char*> argv{command.program.data()};
      for (auto& word : command.args) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(command.program.c_str(), argv.data());
      ::_exit(127);
    }
    char text[4096];
    ASSERT_GT(::recv(notify.get(), text, sizeof text, 0), 0) << "it has not said that it is ready";
  }
  void kill() {
    if (server_ <= 0) return;
    ::kill(server_, SIGKILL);
    ::waitpid(server_, nullptr, 0);
    server_ = -1;
  }
  void TearDown() override { kill(); }
  std::filesystem::path socket() const { return folder_ / "api.sock"; }

  io::Command command(std::vector<std::string> words) const {
    auto out = folder_.command(std::move(words));
    out.env["MUSTER_API_SOCKET"] = socket().string();
    return out;
  }
  io::ProcessExit muster(std::vector<std::string> words) const {
    return ended(command(std::move(words)));
  }
  /// As a user who owns nothing here.
  io::ProcessExit otherUser(std::vector<std::string> words, const std::string& groups = {}) const {
    auto out = command(std::move(words));
    std::vector<std::string> all{"--reuid", kOtherUser, "--regid", kOtherUser};
    if (groups.empty())
      all.emplace_back("--clear-groups");
    else
      all.insert(all.end(), {"--groups", groups});
    all.push_back(out.program);
    all.insert(all.end(), out.args.begin(), out.args.end());
    out.program = "setpriv";
    out.args = std::move(all);
    out.working_dir = "/";
    out.env["HOME"] = "/";
    return ended(std::move(out));
  }
  /// The socket as members of its group have it, without a group of this host.
  void openToOthers() {
    ::chmod((folder_ / ".").c_str(), 0711);
    ::chmod(socket().c_str(), 0666);
  }

  test::MusterFolder folder_;

 private:
  static io::ProcessExit ended(io::Command command) {
    auto out = io::runBlocking(std::move(command));
    return out ? std::move(*out) : io::ProcessExit{-1, "", out.error().str()};
  }
  pid_t server_ = -1;
};

TEST_F(ServerClients, aCommandAsksTheServerThatRunsAndDoesWithoutOne) {
  start();
  const auto added = muster({"quarantine", "add", "gpu001", "--reason", "PSU"});
  ASSERT_EQ(added.code, kOk) << added.err;
  const auto direct = muster({"--direct", "quarantine", "add", "gpu002", "--reason", "fan"});
  ASSERT_EQ(direct.code, kOk) << direct.err;
  const auto listed = muster({"quarantine", "list"});
  EXPECT_THAT(listed.out, HasSubstr("(API, Unix socket, request "));
  const auto by_server = listed.out.substr(0, listed.out.find('\n'));
  EXPECT_THAT(by_server, AllOf(HasSubstr("gpu001"), HasSubstr("API")));
  EXPECT_THAT(listed.out.substr(by_server.size()),
              AllOf(HasSubstr("gpu002"), Not(HasSubstr("API"))));
  EXPECT_EQ(muster({"--direct", "quarantine", "list"}).out, listed.out);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"status"},
                                                {"status", "--json"},
                                                {"findings"},
                                                {"findings", "--json"},
                                                {"events"},
                                                {"pool", "holds"},
                                                {"run", "list"},
                                                {"plan", "--no-refresh", "--json"}}) {
    const auto asked = muster(words);
    EXPECT_EQ(asked.code, kOk) << words[0] << asked.err;
    auto without = words;
    without.insert(without.begin(), "--direct");
    EXPECT_EQ(asked.out, muster(without).out) << words[0];
  }
  for (const std::vector<std::string>& words : {std::vector<std::string>{"history"},
                                                {"history", "gpu001"},
                                                {"history", "--json"},
                                                {"firmware", "plan"},
                                                {"image", "list"},
                                                {"image", "list", "--json"},
                                                {"cert", "verify"},
                                                {"cert", "verify", "--json"},
                                                {"cert", "show", "gpu001"},
                                                {"discover"},
                                                {"discover", "--json"},
                                                {"console", "gpu001", "--list"},
                                                {"console", "gpu001", "--last"},
                                                {"erase", "gpu001", "--report"},
                                                {"bmc", "show"},
                                                {"bmc", "show", "--json"},
                                                {"wipe", "--list"},
                                                {"wipe", "--list", "--json"},
                                                {"monitor", "--breakers"},
                                                {"monitor", "--breakers", "--json"},
                                                {"notify", "list"},
                                                {"fabric", "show"}}) {
    const auto asked = muster(words);
    auto without = words;
    without.insert(without.begin(), "--direct");
    const auto direct_answer = muster(without);
    EXPECT_EQ(asked.out, direct_answer.out) << words[0] << asked.err;
    EXPECT_EQ(asked.code, direct_answer.code) << words[0] << asked.err;
  }
  kill();
  const auto after = muster({"quarantine", "list"});
  EXPECT_EQ(after.code, kOk) << after.err;
  EXPECT_EQ(after.out, listed.out) << "nobody listens on the socket that a killed server left";
}

TEST_F(ServerClients, whatMayBeWipedIsListedAndACommandWithoutAReasonIsNone) {
  EXPECT_EQ(muster({"wipe"}).code, kUsage);
  EXPECT_EQ(muster({"wipe", "gpu001"}).code, kUsage) << "why?";
  ASSERT_EQ(muster({"wipe", "gpu[001-002]", "--reason", "new image"}).code, kOk);
  start();
  const auto listed = muster({"wipe", "--list"});
  EXPECT_EQ(listed.code, kOk) << listed.err;
  EXPECT_EQ(listed.out, "may be wiped once: gpu[001-002]\n");
  EXPECT_EQ(muster({"--direct", "wipe", "--list"}).out, listed.out);
  EXPECT_EQ(muster({"--server", socket().string(), "wipe", "--list"}).out, listed.out);
  EXPECT_EQ(muster({"monitor", "--breakers"}).out, "no circuit breaker is open\n");
}

/// What names no server is a wrong command line, and not one that nobody answers.
TEST_F(ServerClients, aServerThatIsNoneIsAWrongCommandLine) {
  const auto plain = muster({"--server", "http://ctl1:9443", "status"});
  EXPECT_EQ(plain.code, kUsage);
  EXPECT_THAT(plain.err, HasSubstr("write https://ctl1:9443"));
  const auto folder = socket().parent_path().string();
  const auto at_folder = muster({"--server", folder, "status"});
  EXPECT_EQ(at_folder.code, kUsage);
  EXPECT_THAT(at_folder.err, HasSubstr("is a folder; name the socket in it"));
  EXPECT_EQ(muster({"--server", socket().string(), "status"}).code, kFailed) << "nobody listens";
}

/// Nobody reads what it says any more: it ends, and the run goes on.
TEST_F(ServerClients, whoFollowsARunEndsWithItsReader) {
  start();
  const auto asked = io::runBlocking(
      {"curl",
       {"-sS", "--unix-socket", socket().string(), "-H", "Content-Type: application/json", "-d",
        R"({"kind": "apply"})", "http://localhost/api/v1/runs"}});
  ASSERT_TRUE(asked) << asked.error().str();
  const auto id = nlohmann::json::parse(asked->out).value("id", "");
  ASSERT_FALSE(id.empty()) << asked->out;
  auto follow = command({"run", "follow", id});
  follow.args = {"-c", R"({ trap '' PIPE; "$0" run follow "$1"; echo "ended $?" >&2; } | true)",
                 follow.program, id};
  follow.program = "bash";
  follow.timeout = std::chrono::seconds(120);
  const auto ended = io::runBlocking(std::move(follow));
  ASSERT_TRUE(ended) << ended.error().str();
  EXPECT_THAT(ended->err, AllOf(HasSubstr("goes on without this terminal"), HasSubstr("ended 3")));
  EXPECT_THAT(muster({"run", "show", id}).out, HasSubstr("queued"));
}

TEST_F(ServerClients, aViewerNeedsNeitherRootNorASecret) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  folder_.write("access.conf", "user nobody viewer\n");
  start();
  openToOthers();
  ASSERT_EQ(muster({"quarantine", "add", "gpu001", "--reason", "PSU"}).code, kOk);
  const auto status = otherUser({"status"});
  EXPECT_EQ(status.code, kOk) << status.err;
  EXPECT_THAT(status.out, AllOf(HasSubstr("gpu001"), HasSubstr("quarantined")));
  const auto why = otherUser({"why", "gpu001"});
  EXPECT_EQ(why.code, kOk) << why.err;
  EXPECT_THAT(why.out, HasSubstr("PSU"));
  EXPECT_EQ(otherUser({"events"}).code, kOk);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"history"},
                                                {"firmware", "plan"},
                                                {"image", "list"},
                                                {"discover"},
                                                {"audit", "head"}}) {
    const auto looked = otherUser(words);
    EXPECT_EQ(looked.code, kOk) << words[0] << looked.err;
  }
  const auto consoles = otherUser({"console", "gpu001", "--list"});
  EXPECT_EQ(consoles.code, kFailed);
  EXPECT_THAT(consoles.err, AllOf(HasSubstr("nobody (viewer) may not"), HasSubstr("operator")));
  const auto wipe = otherUser({"wipe", "gpu001", "--reason", "mine"});
  EXPECT_EQ(wipe.code, kFailed);
  EXPECT_THAT(wipe.err, AllOf(HasSubstr("nobody (viewer) may not"), HasSubstr("admin")));
  const auto refused = otherUser({"quarantine", "remove", "gpu001", "--reason", "mine"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("nobody (viewer) may not"), HasSubstr("operator")));
  const auto plan = otherUser({"plan", "--json"});
  EXPECT_EQ(plan.code, kFailed);
  EXPECT_THAT(plan.out, HasSubstr(R"("code":"denied")"));
  EXPECT_EQ(otherUser({"--direct", "status"}).code, kFailed) << "the state folder is shut to them";
}

TEST_F(ServerClients, aMemberOfANamedGroupLooksAndOthersAreToldWhomToAsk) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  folder_.write("access.conf", "group games viewer\n");
  start();
  openToOthers();
  const auto member = otherUser({"status"}, "60");  // games, in Debian's base-passwd
  EXPECT_EQ(member.code, kOk) << member.err;
  const auto other = otherUser({"status"});
  EXPECT_EQ(other.code, kFailed);
  EXPECT_THAT(other.err, AllOf(HasSubstr("group muster"), HasSubstr("access.conf")));
  ::chmod(socket().c_str(), 0600);
  const auto shut = otherUser({"status"}, "60");
  EXPECT_EQ(shut.code, kFailed);
  EXPECT_THAT(shut.err, AllOf(HasSubstr("denied"), HasSubstr("group muster")));
}

TEST_F(ServerClients, whereNoServerIsNobodySaysThatOneServes) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to become somebody else";
  ASSERT_EQ(muster({"quarantine", "add", "gpu001", "--reason", "PSU"}).code, kOk);
  ::chmod((folder_ / ".").c_str(), 0711);
  const auto alone = otherUser({"status"});
  EXPECT_EQ(alone.code, kFailed);
  EXPECT_THAT(alone.err, Not(HasSubstr("a server serves")));
  ::chmod((folder_ / ".").c_str(), 0700);  // not even whether there is a socket can be seen
  EXPECT_THAT(otherUser({"status"}).err, Not(HasSubstr("a server serves")));
}

/// A server that was named is asked for work, too: the run is its, and the command follows it.
TEST_F(ServerClients, workIsHandedToTheServerThatIsNamed) {
  start();
  const std::string at = socket().string();
  struct Order {
    std::vector<std::string> words;
    const char* kind;
  };
  for (const auto& [words, kind] :
       {Order{{"apply", "--yes", "--nodes", "gpu001"}, "apply"},
        Order{{"rollout", "start", "--driver", "nvidia-575", "--nodes", "gpu001"}, "rollout"},
        Order{{"validate", "run", "--nodes", "gpu001"}, "validate"},
        Order{{"firmware", "retry", "gpu001", "--reason", "reseated"}, "firmware-retry"},
        Order{{"bmc", "certificate", "gpu001", "--yes"}, "bmc-certificate"},
        Order{{"image", "build", "bookworm"}, "image-build"}}) {
    auto all = words;
    all.insert(all.begin(), {"--server", at});
    auto ended = std::async(std::launch::async, [&] { return muster(all); });
    // Nobody carries it out here: it is found, and cancelled, and then the command ends.
    std::string id;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (id.empty() && std::chrono::steady_clock::now() < limit) {
      const auto listed = jsonOrNone(muster({"--json", "run", "list", "--open"}).out, kServerJson);
      for (const auto& run : listed)
        if (run.value("kind", "") == kind) id = run.value("id", "");
    }
    ASSERT_FALSE(id.empty()) << kind;
    EXPECT_EQ(muster({"run", "cancel", id}).code, kOk);
    const auto followed = ended.get();
    EXPECT_THAT(followed.err, HasSubstr("run " + id)) << kind;
    EXPECT_THAT(followed.err, HasSubstr("kept until somebody carries runs out"))
        << "the server only answers";
    EXPECT_THAT(followed.out, HasSubstr("run " + id + " is cancelled")) << kind;
    const auto shown = jsonOrNone(muster({"--json", "run", "show", id}).out, kServerJson);
    EXPECT_EQ(shown["asked_by"]["way"], "unix") << "the server knows who asks";
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state/monitor.lock"));
}

/// A run outlives who carries it out, and so does following it.
TEST_F(ServerClients, followingOutlivesAServerThatIsKilled) {
  start();
  auto followed = command({"--server", socket().string(), "apply", "--yes", "--nodes", "gpu001"});
  const auto said = folder_ / "followed.err";
  auto words = followed.args;
  words.insert(words.begin(),
               {"-c", R"("$0" "$@" 2>")" + said.string() + R"(")", followed.program});
  followed.program = "/bin/sh";
  followed.args = words;
  auto ended = std::async(std::launch::async, [&] { return *io::runBlocking(followed); });
  const auto text = [&] { return io::readFile(said).value_or(""); };
  const auto until = [&](const std::string& part) {
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (text().find(part) == std::string::npos && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return text().find(part) != std::string::npos;
  };
  ASSERT_TRUE(until("kept until somebody carries runs out")) << text();
  kill();
  ASSERT_TRUE(until("is asked again")) << text();
  start();
  const auto listed = jsonOrNone(muster({"--json", "run", "list", "--open"}).out, kServerJson);
  ASSERT_EQ(listed.size(), 1U);
  const std::string id = listed[0].value("id", "");
  EXPECT_EQ(muster({"run", "cancel", id}).code, kOk);
  EXPECT_THAT(ended.get().out, HasSubstr("run " + id + " is cancelled")) << text();
}

/// A server that only answers carries nothing out: the command does it here, as without one.
TEST_F(ServerClients, aServerThatOnlyAnswersIsGivenNoWork) {
  start();
  const auto refused = muster({"rollout", "start", "--driver", "nvidia-575", "--nodes", "gpu001"});
  EXPECT_EQ(refused.code, kFailed);
  EXPECT_THAT(refused.err, HasSubstr("nvidia-575"));
  EXPECT_EQ(muster({"run", "list"}).out, "there are no runs\n");
  EXPECT_THAT(muster({"rollout", "status"}).err, HasSubstr("no rollout was ever started"));
}

TEST_F(ServerClients, whatAsksNoServerRefusesToBeSentToOne) {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"key", "list"},
                                                {"backup", "site.backup"},
                                                {"discover", "scan"},
                                                {"inventory", "check"},
                                                {"bmc", "forget-tpm", "gpu001"}}) {
    auto named = words;
    named.insert(named.begin(), {"--server", "https://ctl1:9443"});
    const auto refused = muster(named);
    EXPECT_EQ(refused.code, kUsage) << words[0];
    EXPECT_THAT(refused.err,
                AllOf(HasSubstr("`muster " + words[0]), HasSubstr("asks no server: ")));
  }
  // What only this process can do is refused before anything is opened.
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"apply", "plan.json"},
        {"rollout", "start", "--driver", "x", "--nodes", "gpu001", "--dry-run"},
        {"erase", "gpu001"},
        {"validate", "run", "--nodes", "gpu001", "--dry-run"},
        {"monitor"},
        {"console", "gpu001"},
        {"discover", "--write", "nodes.csv"},
        {"cert", "verify", "--file", "c.json", "--key", "k.pem"}}) {
    auto named = words;
    named.insert(named.begin(), {"--server", "/nowhere/api.sock"});
    const auto refused = muster(named);
    EXPECT_EQ(refused.code, kFailed) << words[0];
    EXPECT_THAT(refused.err, HasSubstr("leave out --server")) << words[0];
  }
  const auto status = muster({"--server", "/nowhere/api.sock", "status"});
  EXPECT_EQ(status.code, kFailed);
  EXPECT_THAT(status.err, HasSubstr("/nowhere/api.sock"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "state")) << "nothing was opened instead";
}

}  // namespace
}  // namespace muster::cli
