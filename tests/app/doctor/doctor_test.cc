// SPDX-License-Identifier: Apache-2.0
// What doctor says of a host: a network namespace of the test's own, with real dnsmasq on the other
// end of a wire, a real listener on a port, files of wrong modes.
#include "app/doctor/doctor.h"

#include "app/doctor/dhcp_rival.h"
#include "base/io/process.h"
#include "inventory/model/cluster.h"
#include "tests/app/site_folder.h"
#include "tests/own_network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <thread>

namespace muster::app {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

const DoctorLine* find(const std::vector<DoctorLine>& lines, std::string_view what) {
  for (const auto& line : lines)
    if (line.what == what) return &line;
  return nullptr;
}
std::string textOf(const std::vector<DoctorLine>& lines) {
  std::string out;
  for (const auto& line : lines)
    out += fmt::format("{} {}: {} | {}\n", wordOf(line.verdict), line.what, line.text, line.mend);
  return out;
}
DoctorVerdict verdictOf(const std::vector<DoctorLine>& lines, std::string_view what) {
  const auto* line = find(lines, what);
  EXPECT_TRUE(line) << what << "\n" << textOf(lines);
  return line ? line->verdict : DoctorVerdict::Bad;
}

class Doctor : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = network_.enter(); !why.empty()) GTEST_SKIP() << why;
    const auto made = network_.addWire("far", "");
    ASSERT_TRUE(made) << made.error().str();
  }
  void TearDown() override {
    rival_.reset();
    network_.leave();
  }
  static void run(const std::string& script) {
    const auto done = io::runChecked({.program = "sh", .args = {"-ec", script}});
    ASSERT_TRUE(done) << done.error().str();
  }
  std::vector<DoctorLine> examine(bool without_network = true) const {
    return examineHost(site_.options(), {without_network});
  }
  /// A foreign DHCP server behind the wire: dnsmasq in a namespace of its own.
  void startRival() {
    const auto leases = (site_ / "rival.leases").string(), log = (site_ / "rival.log").string();
    // Its namespace lives as long as its process; the wire's other end is moved into it.
    const auto script = fmt::format(
        "ip link set lo up; : > {0}/waiting; while [ ! -e /sys/class/net/far ] && ! ip link show "
        "far "
        ">/dev/null 2>&1; do sleep 0.05; done; ip link set far up; ip address add 10.20.0.77/16 "
        "dev "
        "far; exec dnsmasq --no-daemon --conf-file=/dev/null --port=0 --interface=far "
        "--dhcp-range=10.20.99.1,10.20.99.9,1h --dhcp-leasefile={1} --user=root --no-ping",
        site_.options().inventory.parent_path().string(), leases);
    auto started =
        processes_->start({.program = "unshare", .args = {"--net", "sh", "-ec", script}}, log);
    ASSERT_TRUE(started) << started.error().str();
    rival_ = std::move(*started);
    ASSERT_TRUE(becomes([&] { return fs::exists(site_ / "waiting"); }));
    run(fmt::format("ip link set far netns {}", rival_->pid()));
    ASSERT_TRUE(becomes([&] {
      return io::readFile(log).value_or("").find("DHCP, IP range") != std::string::npos;
    })) << io::readFile(log).value_or("");
  }
  template <class Condition>
  static bool becomes(Condition condition) {
    for (int tries = 0; tries < 400; ++tries) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    return false;
  }

  SiteFolder site_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  std::unique_ptr<io::Child> rival_;
  test::OwnNetwork network_;
};

TEST_F(Doctor, namesTheCommandThatGivesTheHostItsAddress) {
  auto lines = examine();
  const auto* address = find(lines, "address");
  ASSERT_TRUE(address) << textOf(lines);
  EXPECT_EQ(address->verdict, DoctorVerdict::Bad);
  EXPECT_THAT(address->mend, HasSubstr("ip address add 10.20.0.1/16 dev "));
  // The command is tried as it stands.
  run(address->mend.substr(0, address->mend.find("   (")));
  lines = examine();
  EXPECT_EQ(verdictOf(lines, "address"), DoctorVerdict::Ok) << textOf(lines);
  EXPECT_EQ(verdictOf(lines, "ports"), DoctorVerdict::Ok) << textOf(lines);
}

TEST_F(Doctor, namesWhoHasAPort) {
  run("ip address add 10.20.0.1/16 dev wire");
  const io::Fd http(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(8443);
  ASSERT_EQ(::bind(http.get(), reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
  ASSERT_EQ(::listen(http.get(), 1), 0);
  const auto lines = examine();
  const auto* ports = find(lines, "ports");
  ASSERT_TRUE(ports);
  EXPECT_EQ(ports->verdict, DoctorVerdict::Bad);
  EXPECT_THAT(ports->text, HasSubstr("port 8443"));
  EXPECT_THAT(ports->text, HasSubstr(fmt::format("({})", ::getpid())));
}

TEST_F(Doctor, seesAnotherDhcpServerAndSaysNothingOfASilentWire) {
  run("ip address add 10.20.0.1/16 dev wire");
  const auto silent = dhcpServersOn("wire", std::chrono::milliseconds(300));
  ASSERT_TRUE(silent) << silent.error().str();
  EXPECT_TRUE(silent->empty());
  startRival();
  if (HasFatalFailure()) return;
  const auto lines = examine(false);
  const auto* dhcp = find(lines, "dhcp");
  ASSERT_TRUE(dhcp) << textOf(lines);
  EXPECT_EQ(dhcp->verdict, DoctorVerdict::Bad) << dhcp->text;
  EXPECT_THAT(dhcp->text, HasSubstr("10.20.0.77"));
  // The BMCs of this inventory are nowhere.
  EXPECT_EQ(verdictOf(lines, "bmcs"), DoctorVerdict::Bad);
}

TEST_F(Doctor, besideAnotherServerWantsOne) {
  run("ip address add 10.20.0.1/16 dev wire");
  std::string text(SiteFolder::kInventory);
  const std::string mode = "{mode: authoritative, range: 10.20.240.1-10.20.247.254}";
  text.replace(text.find(mode), mode.size(), "{mode: proxy}");
  site_.write("cluster.yaml", text);
  auto lines = examine(false);
  EXPECT_EQ(verdictOf(lines, "dhcp"), DoctorVerdict::Bad) << textOf(lines);
  startRival();
  if (HasFatalFailure()) return;
  lines = examine(false);
  EXPECT_EQ(verdictOf(lines, "dhcp"), DoctorVerdict::Ok) << textOf(lines);
}

TEST_F(Doctor, seesModesThatLetOthersRead) {
  ASSERT_TRUE(io::makeDirs(site_ / "state", 0755));
  auto lines = examine();
  const auto* state = find(lines, "state");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->verdict, DoctorVerdict::Bad);
  run(state->mend);
  EXPECT_EQ(verdictOf(examine(), "state"), DoctorVerdict::Ok);
}

TEST_F(Doctor, everySecretOfTheInventoryIsLookedAt) {
  std::string text(SiteFolder::kInventory);
  text += "notifications:\n  ops: {url: \"https://ops.example.org/hook\", secret: {file: hook}}\n";
  site_.write("cluster.yaml", text);
  auto lines = examine();
  const auto* inventory = find(lines, "inventory");
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->verdict, DoctorVerdict::Bad);
  EXPECT_THAT(inventory->text, HasSubstr("the secret's file hook does not exist"));
  site_.write("hook", "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\n");
  fs::permissions(site_ / "hook", fs::perms(0644));
  lines = examine();
  const auto* secrets = find(lines, "secrets");
  ASSERT_TRUE(secrets) << textOf(lines);
  EXPECT_EQ(secrets->verdict, DoctorVerdict::Bad);
  EXPECT_THAT(secrets->text, HasSubstr("hook (of the receiver of notifications ops)"));
  run(secrets->mend);
  EXPECT_EQ(verdictOf(examine(), "secrets"), DoctorVerdict::Ok);
}

TEST_F(Doctor, whoAsksLooksAtMoreWithTheInventoryThatWasRead) {
  std::size_t nodes = 0;
  DoctorRequest request{.without_network = true};
  request.besides = [&nodes](const inventory::Cluster* cluster, std::vector<DoctorLine>& out) {
    nodes = cluster ? cluster->nodes.size() : 99;
    out.push_back({"besides", DoctorVerdict::Ok, "seen", {}, {}});
  };
  auto lines = examineHost(site_.options(), request);
  EXPECT_EQ(nodes, 2u);
  EXPECT_TRUE(find(lines, "besides")) << textOf(lines);
  site_.write("cluster.yaml", "cluster: {nmae: x}\n");
  lines = examineHost(site_.options(), request);
  EXPECT_EQ(nodes, 99u) << "it does not load";
  EXPECT_TRUE(find(lines, "besides"));
}

TEST_F(Doctor, anInventoryThatIsMissingOrWrongIsAFindingToo) {
  site_.write("cluster.yaml", "cluster: {nmae: x}\n");
  auto lines = examine();
  const auto* inventory = find(lines, "inventory");
  ASSERT_TRUE(inventory);
  EXPECT_EQ(inventory->verdict, DoctorVerdict::Bad);
  EXPECT_THAT(inventory->mend, HasSubstr("muster inventory check"));
  EXPECT_TRUE(find(lines, "programs"));
  fs::remove(site_ / "cluster.yaml");
  lines = examine();
  EXPECT_EQ(find(lines, "inventory")->mend, "muster init");
}

TEST_F(Doctor, aBmcThatAnswersIsReachedWithoutALogin) {
  run("ip address add 10.20.0.1/16 dev wire; ip address add 10.20.250.1/32 dev lo; ip address add "
      "10.20.250.2/32 dev lo");
  const io::Fd bmc(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(443);
  ASSERT_EQ(::bind(bmc.get(), reinterpret_cast<sockaddr*>(&here), sizeof here), 0);
  ASSERT_EQ(::listen(bmc.get(), 4), 0);
  EXPECT_EQ(verdictOf(examine(false), "bmcs"), DoctorVerdict::Ok);
  const io::Fd connection(::accept(bmc.get(), nullptr, nullptr));
  char byte = 0;
  EXPECT_EQ(::recv(connection.get(), &byte, 1, 0), 0) << "closed, and nothing was sent";
}

}  // namespace
}  // namespace muster::app
