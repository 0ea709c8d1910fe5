// SPDX-License-Identifier: Apache-2.0
// A running node's network changed under the real systemd-networkd, in namespaces of the test's
// own. The controller is in another one, at the other end of a cable; who reaches it is asked of
// ping. systemctl, systemd-run and journalctl are scripts: systemd does not run in here.
#include "agent/tasks/network_change.h"

#include "agent/network/network_change.h"
#include "agent/network/network_files.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "tests/run_async.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace muster::agent {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kHurry = 4;  ///< how much faster than the wall's the test's clock goes
constexpr const char* kController = "10.20.0.1";

constexpr std::string_view kSystemctl = R"sh(#!/bin/sh
echo "$*" >> "$HERE/told"
case "$1 $*" in
stop*systemd-networkd*|restart*systemd-networkd*)
  if [ -e "$HERE/pid" ]; then
    kill "$(cat "$HERE/pid")"
    while kill -0 "$(cat "$HERE/pid")" 2>/dev/null; do :; done
    rm "$HERE/pid"
  fi ;;
esac
case "$1 $*" in
start*systemd-networkd*|restart*systemd-networkd*)
  setsid /lib/systemd/systemd-networkd >>"$HERE/log" 2>&1 </dev/null &
  echo $! >"$HERE/pid"
  # Who ends this script ends its process group.
  until [ "$(cut -d' ' -f6 "/proc/$!/stat")" = "$!" ]; do :; done ;;
esac
exit 0
)sh";

class HurriedClock final : public Clock {
 public:
  WallTime now() const override { return real_.now(); }
  std::chrono::steady_clock::time_point steady() const override {
    return start_ + (std::chrono::steady_clock::now() - start_) * kHurry;
  }
  Task<bool> waitFor(std::chrono::milliseconds duration, WakeToken* token) override {
    return real_.waitFor(duration / kHurry, token);
  }

 private:
  SystemClock real_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

wire::NodeNetwork network(const std::string& address) {
  wire::NodeNetwork out;
  wire::NetworkLink boot;
  boot.name = "boot";
  boot.mac = "52:54:00:20:00:01";
  boot.addresses = {address};
  out.links = {boot};
  out.provisioning = {boot.mac, "boot", address, {}, {kController}};
  return out;
}

/// A second NIC with an address, which every kernel has.
wire::NodeNetwork withMore() {
  auto out = network("10.20.1.1/16");
  wire::NetworkLink data;
  data.name = "data0";
  data.mac = "52:54:00:20:01:01";
  data.addresses = {"10.30.1.1/16"};
  out.links.push_back(data);
  return out;
}

wire::NodeNetwork withVlan() {
  auto out = network("10.20.1.1/16");
  wire::NetworkLink vlan;
  vlan.name = "stor";
  vlan.kind = wire::LinkKind::Vlan;
  vlan.parent = "boot";
  vlan.vlan_id = 30;
  vlan.addresses = {"10.30.1.1/16"};
  out.links.push_back(vlan);
  return out;
}

wire::NodeNetwork cutOff() { return network("10.99.1.1/16"); }

class NetworkChangeSystem : public testing::Test {
 protected:
  void SetUp() override {
    std::error_code error;
    if (::geteuid() != 0) GTEST_SKIP() << "needs root for namespaces";
    if (!fs::exists("/lib/systemd/systemd-networkd", error) || !run("ping", {"-V"}))
      GTEST_SKIP() << "systemd-networkd or ping is not installed";
    if (::unshare(CLONE_NEWNS | CLONE_NEWNET) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      GTEST_SKIP() << "no namespaces of its own";
    for (const char* folder : {"etc/systemd/network", "etc/muster", "run", "sys", "here/bin"})
      ASSERT_TRUE(io::makeDirs(root_ / folder));
    for (const auto& [name, text] :
         {std::pair<const char*, std::string_view>("systemctl", kSystemctl),
          {"systemd-run", "#!/bin/sh\necho \"$*\" > \"$HERE/timer\"\n"},
          {"journalctl", "#!/bin/sh\ntail -n 5 \"$HERE/log\"\n"}})
      ASSERT_TRUE(io::writeFileAtomic(root_ / "here/bin" / name, text, 0755));
    path_ = ::getenv("PATH");
    ::setenv("HERE", (root_ / "here").c_str(), 1);
    ::setenv("MUSTER_ROOT", root_.c_str(), 1);
    ::setenv("PATH", ((root_ / "here/bin").string() + ":" + path_).c_str(), 1);
    cable();
    ASSERT_EQ(::mount("tmpfs", "/run", "tmpfs", 0, nullptr), 0);
    ASSERT_TRUE(run("sh", {"-c",
                           "mkdir -p /run/systemd/netif/links /run/systemd/netif/leases "
                           "/run/systemd/netif/lldp /run/systemd/network; chown -R "
                           "systemd-network:systemd-network /run/systemd/netif"}));
    ASSERT_EQ(::mount("/run", (root_ / "run").c_str(), nullptr, MS_BIND, nullptr), 0);
    ASSERT_EQ(::mount((root_ / "etc/systemd/network").c_str(), "/etc/systemd/network", nullptr,
                      MS_BIND, nullptr),
              0);
    // Read-only: networkd then waits for no udev, which does not see into this namespace.
    ASSERT_EQ(::mount("sysfs", "/sys", "sysfs", MS_RDONLY, nullptr), 0);
    ASSERT_EQ(::mount("sysfs", (root_ / "sys").c_str(), "sysfs", MS_RDONLY, nullptr), 0);
    ASSERT_TRUE(putNetwork(root_, network("10.20.1.1/16")));
    ASSERT_TRUE(run("systemctl", {"start", "systemd-networkd"}));
    ASSERT_TRUE(reachedSoon()) << io::readFile(root_ / "here/log").value_or("");
  }
  void TearDown() override {
    if (path_.empty()) return;
    (void)run("systemctl", {"stop", "systemd-networkd"});
    ::setenv("PATH", path_.c_str(), 1);
    ::unsetenv("MUSTER_ROOT");
    controller_.reset();
    for (const char* place : {"/sys", "/etc/systemd/network", "/run"}) ::umount2(place, MNT_DETACH);
    for (const char* place : {"sys", "run"}) ::umount2((root_ / place).c_str(), MNT_DETACH);
  }
  static bool run(std::string program, std::vector<std::string> args) {
    const auto done = io::runBlocking({.program = std::move(program), .args = std::move(args)});
    return done && done->code == 0;
  }
  static std::string said(std::string program, std::vector<std::string> args) {
    const auto done = io::runBlocking({.program = std::move(program), .args = std::move(args)});
    return done ? done->out : done.error().str();
  }
  /// From "boot" to the controller's end, in a network namespace that a process holds.
  void cable() {
    auto held = processes_->start(
        {.program = "unshare", .args = {"--net", "sh", "-c", "echo up; exec sleep 600"}},
        root_ / "here/controller");
    ASSERT_TRUE(held) << held.error().str();
    controller_ = std::move(*held);
    while (io::readFile(root_ / "here/controller").value_or("").empty()) std::this_thread::yield();
    const auto pid = std::to_string(controller_->pid());
    ASSERT_TRUE(run("ip", {"link", "add", "boot", "address", "52:54:00:20:00:01", "type", "veth",
                           "peer", "name", "sw-boot", "netns", pid}));
    for (const auto& words :
         {std::string("addr add 10.20.0.1/16 dev sw-boot"), std::string("link set sw-boot up")})
      ASSERT_TRUE(run("sh", {"-c", "nsenter -t " + pid + " -n ip " + words}));
    ASSERT_TRUE(run("ip", {"link", "set", "lo", "up"}));
    ASSERT_TRUE(run("sh", {"-c",
                           "ip link add data0 address 52:54:00:20:01:01 type veth peer name "
                           "sw-data0 && ip link set sw-data0 up"}));
  }
  static bool reached() { return run("ping", {"-c", "1", "-W", "1", "-q", kController}); }
  static bool reachedSoon() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (std::chrono::steady_clock::now() < until)
      if (reached()) return true;
    return false;
  }
  Result<nlohmann::json> change(const wire::NodeNetwork& next,
                                std::function<Async<void>()> reach = askPing) {
    TaskTools tools{root_, "", *processes_, workers_, clock_, "muster-agent", {}};
    tools.reach_controller = std::move(reach);
    wire::NodeServiceParams params{std::string(kNetworkService),
                                   wire::digestOf(next),
                                   {{kNetworkFileName, wire::toJson(next)}},
                                   {}};
    return test::runAsync(
        context_,
        changeNetwork(tools, std::move(params),
                      std::make_shared<TaskContext>("t", std::chrono::seconds(60))),
        std::chrono::seconds(60));
  }
  static Async<void> askPing() {
    if (reached()) co_return Result<void>();
    co_return fail(ErrorCode::Unavailable, "no answer to ping");
  }
  /// An agent of its own that is gone as soon as the new network is there.
  void dieWhileChanging(const wire::NodeNetwork& next) {
    const auto child = ::fork();
    if (child == 0) {
      (void)change(next, []() -> Async<void> {
        ::_exit(9);
        co_return Result<void>();
      });
      ::_exit(1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WEXITSTATUS(status), 9);
  }
  std::string read(const std::string& file) { return io::readFile(root_ / file).value_or("none"); }

  test::TempFolder folder_;
  fs::path root_ = folder_ / "root";
  std::string path_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> controller_;
  Workers workers_{1};
  HurriedClock clock_;
  asio::io_context context_;
};

TEST_F(NetworkChangeSystem, aNetworkThatReachesTheControllerStays) {
  const auto done = change(withMore());
  ASSERT_TRUE(done) << done.error().str() << read("here/log");
  EXPECT_EQ((*done)["started"], true);
  EXPECT_EQ(networkProbe(root_), wire::digestOf(withMore()));
  EXPECT_THAT(said("ip", {"-4", "addr", "show", "data0"}), HasSubstr("10.30.1.1/16"));
  EXPECT_TRUE(reached());
  EXPECT_FALSE(isNetworkChangePending(root_));
  EXPECT_THAT(read("here/timer"),
              AllOf(HasSubstr("--on-active=70"), HasSubstr("AccuracySec=1s"),
                    HasSubstr("/bin/sh /var/lib/muster/network-change/back now")));
  EXPECT_THAT(read("here/told"), AllOf(HasSubstr("enable muster-network-back.service"),
                                       HasSubstr("stop muster-network-undo.timer")));
  // The timer that was not stopped in time finds nothing to do.
  ASSERT_TRUE(run("sh", {(root_ / kNetworkBack).string(), "now"}));
  EXPECT_EQ(networkProbe(root_), wire::digestOf(withMore()));
  EXPECT_EQ((*change(withMore()))["started"], false) << "it is there already";
  ASSERT_TRUE(change(network("10.20.1.1/16")));
  EXPECT_THAT(said("ip", {"-4", "addr", "show", "data0"}), Not(HasSubstr("10.30.")))
      << "networkd alone would leave it";
  EXPECT_TRUE(reached());
}

TEST_F(NetworkChangeSystem, aVlanThatIsDeclaredNoMoreGoes) {
  if (!run("unshare", {"-n", "sh", "-c",
                       "ip link add a type veth peer name b && ip link add link a name v type vlan "
                       "id 5"}))
    GTEST_SKIP() << "this kernel has no VLANs";
  const auto done = change(withVlan());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_THAT(said("ip", {"-4", "addr", "show", "stor"}), HasSubstr("10.30.1.1/16"));
  ASSERT_TRUE(change(network("10.20.1.1/16")));
  EXPECT_FALSE(run("ip", {"link", "show", "stor"})) << "networkd alone would leave it";
  EXPECT_TRUE(reached());
}

TEST_F(NetworkChangeSystem, aNetworkThatCutsTheControllerOffComesBack) {
  const auto before = read("etc/systemd/network/10-muster-boot.network");
  const auto failed = change(cutOff());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::Unavailable);
  EXPECT_FALSE(failed.error().canRetry()) << "it would cut the node off again";
  EXPECT_THAT(failed.error().str(),
              AllOf(HasSubstr("no answer to ping"), HasSubstr("the network before is back")));
  EXPECT_TRUE(reachedSoon());
  EXPECT_THAT(said("ip", {"-4", "addr", "show", "boot"}), Not(HasSubstr("10.99.")));
  EXPECT_EQ(read("etc/systemd/network/10-muster-boot.network"), before);
  EXPECT_EQ(networkProbe(root_), wire::digestOf(network("10.20.1.1/16")));
}

TEST_F(NetworkChangeSystem, anAgentThatIsKilledMeanwhileIsNotNeeded) {
  auto next = withMore();
  next.links[0].addresses = {"10.99.1.1/16"};
  next.provisioning.address = "10.99.1.1/16";
  dieWhileChanging(next);
  EXPECT_EQ(networkProbe(root_), "pending");
  EXPECT_FALSE(reached());
  ASSERT_TRUE(run("sh", {(root_ / kNetworkBack).string(), "now"})) << "systemd's timer";
  EXPECT_TRUE(reachedSoon());
  EXPECT_THAT(said("ip", {"-4", "addr", "show"}), Not(HasSubstr("10.99.")));
  EXPECT_EQ(networkProbe(root_), wire::digestOf(network("10.20.1.1/16")));
  EXPECT_FALSE(confirmNetworkChange(root_)) << "whoever comes later";
}

TEST_F(NetworkChangeSystem, aMachineThatRestartsMeanwhileStartsWithTheNetworkBefore) {
  dieWhileChanging(cutOff());
  ASSERT_TRUE(run("systemctl", {"stop", "systemd-networkd"}));
  ASSERT_TRUE(run("ip", {"addr", "flush", "dev", "boot"}));
  ASSERT_TRUE(io::writeFileAtomic(root_ / "here/told", ""));
  ASSERT_TRUE(run("sh", {(root_ / kNetworkBack).string(), "boot"}));
  EXPECT_EQ(read("here/told"), "") << "the network is not up yet";
  ASSERT_TRUE(run("systemctl", {"start", "systemd-networkd"}));
  EXPECT_TRUE(reachedSoon());
  EXPECT_EQ(networkProbe(root_), wire::digestOf(network("10.20.1.1/16")));
}

TEST_F(NetworkChangeSystem, theNextAttemptTakesBackWhatIsPending) {
  dieWhileChanging(cutOff());
  const auto done = change(withMore());
  ASSERT_TRUE(done) << done.error().str();
  EXPECT_EQ(networkProbe(root_), wire::digestOf(withMore()));
  EXPECT_TRUE(reached());
}

}  // namespace
}  // namespace muster::agent
