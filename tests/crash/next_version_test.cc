// SPDX-License-Identifier: Apache-2.0
// Two versions of muster and one store: real programs, of which muster-next knows one migration
// more (next_schema.cc). What docs/upgrade.md says of one host and of two, walked.
#include "lifecycle/store/sql/schema.h"
#include "lifecycle/store/store_copy.h"
#include "tests/lifecycle/postgres_server.h"
#include "tests/own_network.h"
#include "tests/paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <thread>

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kLimit = 120s;  ///< of one thing that has to happen: a lease on a slow machine

struct Server {
  std::unique_ptr<io::Child> child;
  std::filesystem::path log;
  std::string said() const { return io::readFile(log).value_or(""); }
};

class NextVersion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why_not = network_.enter(); !why_not.empty()) GTEST_SKIP() << why_not;
    const auto up = io::runChecked(
        {.program = "sh", .args = {"-c", "ip link set lo up && ip addr add 127.0.0.2/8 dev lo"}});
    ASSERT_TRUE(up) << up.error().str();
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "passphrase", "a passphrase of the test\n"));
    std::filesystem::permissions(folder_ / "passphrase", std::filesystem::perms(0600));
  }
  void TearDown() override {
    for (auto* each : {&a_, &b_}) {
      if (HasFailure() && each->child) std::cerr << each->log << "\n" << each->said() << "\n";
      each->child.reset();
    }
    network_.leave();
  }
  void declare(std::string_view controllers) {
    ASSERT_TRUE(io::writeFileAtomic(
        folder_ / "cluster.yaml",
        fmt::format(
            "cluster: {{name: two-versions}}\nnetworks:\n  provisioning: {{cidr: "
            "127.0.0.0/8, {}, dhcp: {{mode: none}}}}\nimages:\n  bookworm: {{build: {{suite: "
            "bookworm, packages: [linux-image-amd64]}}}}\nprofiles:\n  sim: {{image: "
            "bookworm}}\nnodes: []\n",
            controllers)));
  }
  /// `program`: muster or muster-next; `host`: a or b.
  io::Command command(const std::string& program, const std::string& host,
                      std::vector<std::string> words) const {
    io::Command out{(binFolder() / program).string(), std::move(words)};
    out.env = {{"MUSTER_INVENTORY", (folder_ / "cluster.yaml").string()},
               {"MUSTER_STATE", (folder_ / host).string()},
               {"MUSTER_CACHE", (folder_ / "cache").string()},
               {"MUSTER_LAB", (folder_ / "no-lab").string()},
               {"MUSTER_STORE", store_},
               {"MUSTER_ADDRESS", host == "a" ? "127.0.0.1" : "127.0.0.2"},
               {"HOME", folder_.path().string()}};
    out.working_dir = folder_.path();
    return out;
  }
  Server serve(const std::string& program, const std::string& host) {
    const auto log = folder_ / fmt::format("{}-{}-{}.log", program, host, ++programs_);
    auto child = io::makeProcessRunner()->start(
        command(program, host,
                {"server", "--socket", (folder_ / (host + ".sock")).string(), "--access",
                 (folder_ / "access.conf").string()}),
        log);
    EXPECT_TRUE(child) << child.error().str();
    return {child ? std::move(*child) : nullptr, log};
  }
  struct Answer {
    int code;
    std::string said;
  };
  Answer run(const std::string& program, const std::string& host, std::vector<std::string> words) {
    auto asked = command(program, host, std::move(words));
    asked.timeout = kLimit;
    const auto ended = io::runBlocking(asked);
    if (!ended) return {-1, ended.error().str()};
    return {ended->code, ended->out + ended->err};
  }
  template <class Condition>
  bool becomes(Condition condition) {
    const auto end = std::chrono::steady_clock::now() + kLimit;
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }
  bool says(const Server& server, std::string_view words) {
    (void)becomes(
        [&] { return server.said().find(words) != std::string::npos || !server.child->running(); });
    return server.said().find(words) != std::string::npos;
  }
  void stop(Server& server, int signal = SIGTERM) {
    server.child->signal(signal);
    ASSERT_TRUE(becomes([&] { return !server.child->running(); })) << server.said();
    server.child.reset();
  }
  int schema() const {
    const auto found = lifecycle::examineStore(
        store_.empty() ? "sqlite:" + (folder_ / "a/muster.db").string() : store_);
    return found ? found->schema : -1;
  }

  const int kOld = static_cast<int>(lifecycle::sql::kMigrations.size());
  TempFolder folder_;
  OwnNetwork network_;
  std::string store_;
  Server a_, b_;
  int programs_ = 0;
};

TEST_F(NextVersion, aCommandOfItDoesNotMigrateTheStoreOfALiveServer) {
  declare("controller: 127.0.0.1");
  a_ = serve("muster", "a");
  ASSERT_TRUE(says(a_, "muster server: 0 nodes"));
  const auto pid = std::to_string(a_.child->pid());
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status"}, {"quarantine", "list"}, {"history"}}) {
    const auto refused = run("muster-next", "a", words);
    EXPECT_NE(refused.code, 0) << words.front();
    EXPECT_THAT(refused.said, HasSubstr("process " + pid + " (")) << words.front();
    EXPECT_THAT(refused.said, HasSubstr("muster server"));
    EXPECT_THAT(refused.said, HasSubstr("nothing was changed"));
    EXPECT_THAT(refused.said, HasSubstr("systemctl stop muster-server"));
  }
  EXPECT_EQ(schema(), kOld);
  EXPECT_EQ(run("muster", "a", {"status"}).code, 0) << "the site is served as before";
  b_ = serve("muster-next", "a");
  ASSERT_TRUE(becomes([&] { return !b_.child->running(); }));
  EXPECT_EQ(schema(), kOld) << "nor does a second server";
  b_.child.reset();
  // What only looks works beside it.
  EXPECT_THAT(run("muster-next", "a", {"store", "check"}).said, HasSubstr("is migrated when"));
  const auto backup = run("muster-next", "a",
                          {"backup", (folder_ / "before.muster").string(), "--passphrase-file",
                           (folder_ / "passphrase").string()});
  EXPECT_EQ(backup.code, 0) << backup.said;
  EXPECT_EQ(schema(), kOld);

  stop(a_, SIGKILL);
  const auto done = run("muster-next", "a", {"status"});
  EXPECT_EQ(done.code, 0) << done.said;
  const auto old = run("muster", "a", {"status"});
  EXPECT_NE(old.code, 0);
  EXPECT_THAT(old.said, HasSubstr(fmt::format("newer muster (schema {}", kOld + 1)))
      << "nobody was left who could not know it";
}

TEST_F(NextVersion, ofTwoHostsTheStandbyGoesFirstAndTheActiveOneIsStoppedBefore) {
  if (!postgresServer().whyNot().empty()) GTEST_SKIP() << postgresServer().whyNot();
  declare("controllers: [127.0.0.1, 127.0.0.2]");
  store_ = postgresServer().createDatabase();
  a_ = serve("muster", "a");
  ASSERT_TRUE(says(a_, "muster server: 0 nodes"));
  std::filesystem::create_directories(folder_ / "b");
  for (const char* what : {"ca", "keys"})
    std::filesystem::copy(folder_ / "a" / what, folder_ / "b" / what,
                          std::filesystem::copy_options::recursive);
  b_ = serve("muster", "b");
  ASSERT_TRUE(says(b_, "stands by;"));

  // The page, line by line.
  EXPECT_EQ(run("muster", "a", {"store", "check"}).code, 0);
  EXPECT_EQ(run("muster", "a",
                {"backup", (folder_ / "before.muster").string(), "--passphrase-file",
                 (folder_ / "passphrase").string()})
                .code,
            0);
  stop(b_);  // and the new packages are installed there
  // Out of turn: a command, and the service, of the new version on B while A serves.
  const auto refused = run("muster-next", "b", {"status"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.said, HasSubstr(fmt::format("process {}", a_.child->pid())));
  EXPECT_THAT(refused.said, HasSubstr(fmt::format("muster schema {}", kOld)));
  b_ = serve("muster-next", "b");
  ASSERT_TRUE(becomes([&] { return !b_.child->running(); }));
  EXPECT_THAT(b_.said(), HasSubstr("nothing was changed"));
  EXPECT_EQ(schema(), kOld);
  EXPECT_THAT(run("muster", "a", {"status"}).said, Not(HasSubstr("newer muster")));

  stop(a_);
  b_ = serve("muster-next", "b");
  ASSERT_TRUE(says(b_, "muster server: 0 nodes")) << b_.said();
  a_ = serve("muster", "a");  // not upgraded yet
  ASSERT_TRUE(becomes([&] { return !a_.child->running(); }));
  EXPECT_THAT(a_.said(), HasSubstr(fmt::format("newer muster (schema {}", kOld + 1)));
  a_ = serve("muster-next", "a");
  ASSERT_TRUE(says(a_, "stands by;"));
  EXPECT_THAT(a_.said(), HasSubstr("127.0.0.2"));
  EXPECT_EQ(run("muster-next", "a", {"status"}).code, 0);
}

}  // namespace
}  // namespace muster::test
