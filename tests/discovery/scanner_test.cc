// SPDX-License-Identifier: Apache-2.0
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/discovery.h"
#include "tests/discovery/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

lab::vbmc::Identity identity(int number) {
  const auto n = std::to_string(number);
  return {.node = "x",
          .serial = "SN-" + n,
          .uuid = "11111111-2222-4333-8444-00000000000" + n,
          .macs = {"52:54:00:20:00:0" + n},
          .model = "Virtual HGX",
          .gpu_models = {"H100", "H100"},
          .bmc_mac = "52:54:00:ff:00:0" + n};
}

TEST(Scanner, unknownMachinesAreSurveyedThroughTheDeclaredCredential) {
  test::BmcWorld world;
  auto cluster = test::discoveringCluster();
  world.credential(cluster, "factory", "admin", "right");
  world.add("10.20.250.7", identity(7), "right");
  std::vector<Machine> seen;
  const auto report = world.scan(cluster, "10.20.250.1-10.20.250.20", seen);
  ASSERT_TRUE(report) << report.error().str();
  EXPECT_EQ(report->addresses, 20u);
  EXPECT_EQ(report->services, 1u);
  EXPECT_EQ(report->surveyed, 1u);
  ASSERT_EQ(seen.size(), 1u);
  const auto& machine = seen.front();
  EXPECT_EQ(machine.bmc, "https://10.20.250.7");
  EXPECT_EQ(machine.vendor, "muster");
  EXPECT_EQ(machine.model, "Virtual HGX");
  EXPECT_EQ(machine.serial, "SN-7");
  EXPECT_THAT(machine.macs, ElementsAre("52:54:00:20:00:07"));
  EXPECT_THAT(machine.bmc_macs, ElementsAre("52:54:00:ff:00:07"));
  EXPECT_EQ(machine.gpuText(), "2× H100");
  EXPECT_EQ(machine.credential, "factory");
  EXPECT_TRUE(machine.note.empty()) << machine.note;
  EXPECT_EQ(world.net.requests.back().method, "DELETE") << "the session is given back";
}

TEST(Scanner, noPasswordGoesToWhatDoesNotSayThatItIsRedfish) {
  test::BmcWorld world;
  auto cluster = test::discoveringCluster();
  world.credential(cluster, "factory", "admin", "right");
  world.others["10.20.250.8"] = "<html>a switch</html>";
  world.others["10.20.250.9"] = R"({"@odata.type": "#Something.Else"})";
  std::vector<Machine> seen;
  ASSERT_TRUE(world.scan(cluster, "10.20.250.8-10.20.250.9", seen));
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(world.logins("10.20.250.8") + world.logins("10.20.250.9"), 0);
}

TEST(Scanner, credentialsAreTriedInTurnAndARefusedOneNeverAgain) {
  test::BmcWorld world;
  auto cluster = test::discoveringCluster();
  world.credential(cluster, "a-root", "root", "wrong");
  world.credential(cluster, "b-admin", "admin", "right");
  world.add("10.20.250.7", identity(7), "right");
  for (int scan = 0; scan < 4; ++scan) {
    std::vector<Machine> seen;
    ASSERT_TRUE(world.scan(cluster, "10.20.250.7", seen));
    ASSERT_EQ(seen.size(), 1u);
    EXPECT_EQ(seen.front().credential, "b-admin");
  }
  EXPECT_EQ(world.logins("10.20.250.7"), 1 + 4) << "root was tried once, in the first scan only";
}

TEST(Scanner, anAccountIsNeverLockedHoweverOftenItIsScanned) {
  test::BmcWorld world;
  auto cluster = test::discoveringCluster();
  for (const char* name : {"a", "b", "c"})
    world.credential(cluster, name, "admin", std::string("wrong-") + name);
  auto& unit = world.add("10.20.250.7", identity(7), "right");
  std::vector<Machine> seen;
  ASSERT_TRUE(world.scan(cluster, "10.20.250.7", seen));
  EXPECT_EQ(world.logins("10.20.250.7"), 1) << "one refusal an account name and scan";
  EXPECT_THAT(seen.front().note, HasSubstr("b, c has the same account name"));
  for (int scan = 0; scan < 20; ++scan) ASSERT_TRUE(world.scan(cluster, "10.20.250.7", seen));
  EXPECT_EQ(world.logins("10.20.250.7"), 3) << "each wrong password once in its life";
  EXPECT_EQ(seen.back().serial, "");
  EXPECT_THAT(seen.back().note, HasSubstr("refuses a, b, c"));
  cluster.discovery->credentials.clear();
  world.credential(cluster, "d", "admin", "right");
  ASSERT_TRUE(world.scan(cluster, "10.20.250.7", seen));
  EXPECT_EQ(seen.back().serial, "SN-7") << "the account still lets in who knows the password";
  EXPECT_LT(unit.service->state().slots.size(), 100u);
}

/// A cluster in which the inventory must declare or somebody approve a certificate before a
/// password goes out.
struct DeclaredScan : ::testing::Test {
  DeclaredScan() {
    cluster.bmc_trust = inventory::BmcTrustPolicy::Declared;
    world.credential(cluster, "factory", "admin", "right");
    world.add("10.20.250.7", identity(7), "right");
    world.add("10.20.250.8", identity(8), "right");
  }
  /// Approves these; notes what was shown, and that no password had gone out by then.
  Approver approving(std::set<std::string> hosts) {
    return [this, hosts](const std::vector<Contact>& met) {
      shown = met;
      EXPECT_EQ(world.logins("10.20.250.7") + world.logins("10.20.250.8"), 0)
          << "the certificates are shown before any password";
      std::map<std::string, std::string> out;
      for (const auto& one : met)
        if (hosts.contains(one.bmc)) out[one.bmc] = "alice";
      return out;
    };
  }
  test::BmcWorld world;
  inventory::Cluster cluster = test::discoveringCluster();
  std::vector<Contact> shown;
  std::vector<Machine> seen;
};

TEST_F(DeclaredScan, onlyABmcWhoseCertificateWasApprovedGetsAPassword) {
  const auto report =
      world.scan(cluster, "10.20.250.1-10.20.250.20", seen, approving({"https://10.20.250.8"}));
  ASSERT_TRUE(report) << report.error().str();
  ASSERT_EQ(shown.size(), 2u);
  EXPECT_EQ(shown[0].bmc, "https://10.20.250.7");
  EXPECT_EQ(shown[0].certificate, world.net.fingerprint);
  EXPECT_EQ(world.logins("10.20.250.7"), 0);
  EXPECT_EQ(world.logins("10.20.250.8"), 1);
  EXPECT_EQ(report->unapproved, 1u);
  EXPECT_EQ(report->surveyed, 1u);
  ASSERT_EQ(seen.size(), 2u);
  if (seen[0].bmc.ends_with("8")) std::swap(seen[0], seen[1]);
  EXPECT_THAT(seen[0].note, HasSubstr(world.net.fingerprint));
  EXPECT_EQ(seen[0].certificate_approved_by, "");
  EXPECT_EQ(seen[1].serial, "SN-8");
  EXPECT_EQ(seen[1].certificate_approved_by, "alice");
}

TEST_F(DeclaredScan, withoutAnybodyWhoApprovesNoPasswordGoesOut) {
  ASSERT_TRUE(world.scan(cluster, "10.20.250.1-10.20.250.20", seen));
  EXPECT_EQ(world.logins("10.20.250.7") + world.logins("10.20.250.8"), 0);
}

TEST_F(DeclaredScan, whoAnswersInsteadAfterTheApprovalGetsNothing) {
  const auto before = world.net.fingerprint;
  for (const auto policy :
       {inventory::BmcTrustPolicy::Declared, inventory::BmcTrustPolicy::FirstContact}) {
    cluster.bmc_trust = policy;
    world.net.fingerprint = before;
    auto approve = approving({"https://10.20.250.7", "https://10.20.250.8"});
    ASSERT_TRUE(
        world.scan(cluster, "10.20.250.1-10.20.250.20", seen, [&](const std::vector<Contact>& met) {
          auto out = approve(met);
          world.net.fingerprint = std::string(64, 'f');
          return out;
        }));
    EXPECT_EQ(world.logins("10.20.250.7") + world.logins("10.20.250.8"), 0);
  }
}

TEST_F(DeclaredScan, aNodesBmcIsAskedByWhatTheInventoryDeclaresAndNotShownForApproval) {
  inventory::Node node;
  node.name = NodeName("gpu001");
  node.profile = "hgx";
  node.bmc.url = "https://10.20.250.7";
  cluster.nodes.push_back(node);
  ASSERT_TRUE(world.scan(cluster, "10.20.250.7", seen, approving({"https://10.20.250.7"})));
  EXPECT_TRUE(shown.empty());
  EXPECT_EQ(world.logins("10.20.250.7"), 0);
}

TEST(Scanner, withoutCredentialsTheServiceIsStillListed) {
  test::BmcWorld world;
  const auto cluster = test::discoveringCluster();
  world.add("10.20.250.7", identity(7), "right");
  std::vector<Machine> seen;
  ASSERT_TRUE(world.scan(cluster, "10.20.250.7", seen));
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen.front().vendor, "muster");
  EXPECT_THAT(seen.front().note, HasSubstr("discovery.credentials"));
  EXPECT_EQ(world.logins("10.20.250.7"), 0);
}

TEST(Scanner, whatUnknownSendersSayHoldsNoEscapeSequences) {
  test::BmcWorld world;
  auto cluster = test::discoveringCluster();
  world.credential(cluster, "factory", "admin", "right");
  auto who = identity(7);
  who.serial = "SN\x1b[2J-7";
  who.model = "Virtual\n\x1b]0;root\x07 HGX";
  who.gpu_models = {"H100\x1b[31m"};
  world.add("10.20.250.7", who, "right");
  world.others["10.20.250.8"] =
      R"({"RedfishVersion": "1.9.0", "Vendor": "\u001b[31mEvil", "Product": "\u001b[2Jbox\u009b"})";
  std::vector<Machine> seen;
  const auto report = world.scan(cluster, "10.20.250.7-10.20.250.8", seen);
  ASSERT_TRUE(report);
  ASSERT_EQ(seen.size(), 2u);
  if (seen[0].bmc.ends_with("8")) std::swap(seen[0], seen[1]);
  EXPECT_EQ(seen[0].serial, "SN[2J-7");
  EXPECT_EQ(seen[0].model, "Virtual]0;root HGX");
  EXPECT_EQ(seen[0].gpuText(), "1× H100[31m");
  EXPECT_EQ(seen[1].model, "[2Jbox");
  for (const auto& problem : report->problems)
    EXPECT_EQ(problem.find('\x1b'), std::string::npos) << problem;
}

TEST(Scanner, threeHundredAddressesAreAskedAFewAtATime) {
  test::BmcWorld world;
  auto cluster = test::discoveringCluster();
  world.credential(cluster, "factory", "admin", "right");
  for (int n = 1; n <= 9; ++n) world.add("10.20.251." + std::to_string(n), identity(n), "right");
  std::size_t open = 0, most = 0;
  auto inner = world.net.handle;
  world.net.handle = [&, inner](io::HttpRequest request) -> Async<io::HttpResponse> {
    most = std::max(most, ++open);
    co_await world.loop.clock.sleep(std::chrono::milliseconds(5));
    auto response = co_await inner(std::move(request));
    --open;
    co_return response;
  };
  std::vector<Machine> seen;
  const auto report = world.scan(cluster, "10.20.250.0-10.20.251.44", seen);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->surveyed, 9u);
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_LE(most, kMaxConcurrent);
  EXPECT_GT(most, 1u);
}

}  // namespace
}  // namespace muster::discovery
