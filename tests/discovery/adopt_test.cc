// SPDX-License-Identifier: Apache-2.0
#include "discovery/adopt.h"
#include "base/ip_address.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/discovery.h"
#include "inventory/model/networks.h"
#include "tests/discovery/world.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::discovery {
namespace {

using ::testing::HasSubstr;

Machine machine(int n, int nics = 1) {
  Machine out;
  out.bmc = "https://10.1.0." + std::to_string(n);
  out.serial = "SN-" + std::to_string(n);
  out.model = "DGX H100";
  out.credential = "factory";
  out.bmc_macs = {"bb:00:00:00:00:0" + std::to_string(n)};
  for (int nic = 0; nic < nics; ++nic)
    out.macs.push_back("aa:00:00:00:0" + std::to_string(nic) + ":0" + std::to_string(n));
  return out;
}

struct AdoptTest : ::testing::Test {
  AdoptTest() {
    for (int n : {12, 3, 7}) {
      auto one = machine(n % 10);
      one.bmc = "https://10.1.0." + std::to_string(n);
      one.serial = "SN-" + std::to_string(n);
      registry.machines().push_back(one);
    }
  }
  Result<Rows> rows(const std::map<std::string, CsvFields>& extras = {}) {
    return rowsFor(registry, cluster, "/inv/racks.csv", extras);
  }
  inventory::Cluster cluster = test::discoveringCluster();
  MachineRegistry registry;
};

TEST_F(AdoptTest, approvedMachinesGetNamesAndAddressesInTheOrderOfTheirBmcs) {
  for (auto& one : registry.machines()) ASSERT_TRUE(approve(one, {.by = "alice"}, cluster));
  const auto made = rows();
  ASSERT_TRUE(made) << made.error().str();
  ASSERT_EQ(made->rows.size(), 3u);
  EXPECT_EQ(made->rows[0].at("name"), "gpu001");
  EXPECT_EQ(made->rows[0].at("serial"), "SN-3");
  EXPECT_EQ(made->rows[0].at("address"), "10.20.0.2") << "after the controller";
  EXPECT_EQ(made->rows[2].at("name"), "gpu003");
  EXPECT_EQ(made->rows[2].at("serial"), "SN-12") << "by number, not by text";
  const auto again = rows();
  EXPECT_EQ(again->rows, made->rows) << "doing it again gives the same names";
}

TEST_F(AdoptTest, theCertificateThatGotThePasswordIsWrittenAsThePin) {
  for (auto& one : registry.machines()) {
    ASSERT_TRUE(approve(one, {.by = "alice"}, cluster));
    one.certificate = std::string(64, 'a');
  }
  registry.machines()[0].credential.clear();  // 10.1.0.12: nobody has logged in there
  auto made = rows();
  ASSERT_EQ(made->rows.size(), 3u);
  EXPECT_EQ(made->rows[0].at("bmc_pin"), std::string(64, 'a'));
  EXPECT_FALSE(made->rows[2].contains("bmc_pin"));
  cluster.bmc_trust = inventory::BmcTrustPolicy::Declared;
  registry.machines()[1].certificate_approved_by = "bob";
  made = rows();
  ASSERT_EQ(made->rows.size(), 1u)
      << "what nobody approved would be a node that no password goes to";
  EXPECT_EQ(made->rows[0].at("bmc_pin"), std::string(64, 'a'));
  ASSERT_EQ(made->left_out.size(), 2u);
  EXPECT_THAT(made->left_out[0], HasSubstr("certificate"));
}

TEST_F(AdoptTest, nothingIsWrittenThatNobodyApproved) { EXPECT_TRUE(rows()->rows.empty()); }

TEST_F(AdoptTest, aRuleApprovesOnlyWhatABmcHasToldItself) {
  cluster.discovery->rules = {{.name = "hgx",
                               .match = {{"model", "*H100*"}},
                               .profile = "hgx",
                               .rack = "r7",
                               .approve = true}};
  registry.machines()[0].credential.clear();
  EXPECT_EQ(applyRules(registry, cluster), 2u);
  EXPECT_FALSE(registry.machines()[0].approved()) << "anybody can announce a model";
  EXPECT_EQ(registry.machines()[1].approved_by, "rule hgx");
  EXPECT_EQ(registry.machines()[1].rack, "r7");
  EXPECT_EQ(applyRules(registry, cluster), 0u);
}

TEST_F(AdoptTest, aMachineWithSeveralNicsWaitsUntilOneBootsOrAPersonSays) {
  registry.machines() = {machine(1, 4)};
  ASSERT_TRUE(approve(registry.machines()[0], {.by = "alice"}, cluster));
  EXPECT_THAT(rows()->left_out.at(0), HasSubstr("has 4 NICs"));
  EXPECT_FALSE(
      approve(registry.machines()[0], {.boot_mac = "aa:00:00:00:00:99", .by = "alice"}, cluster));
  ASSERT_TRUE(
      approve(registry.machines()[0], {.boot_mac = "aa:00:00:00:02:01", .by = "alice"}, cluster));
  EXPECT_EQ(rows()->rows.at(0).at("mac"), "aa:00:00:00:02:01");
}

TEST_F(AdoptTest, aListOfSerialsOrBmcMacsAdoptsARack) {
  const auto list = parseList(
      "name,serial,bmc_mac,unit\ngpu002,SN-7,,12\n,,BB-00-00-00-00-03,\n,SN-99,,\n", "list.csv");
  ASSERT_TRUE(list) << list.error().str();
  std::map<std::string, CsvFields> extras;
  const auto unseen = applyList(registry, *list, "list.csv", {.by = "alice"}, cluster, &extras);
  ASSERT_TRUE(unseen) << unseen.error().str();
  ASSERT_EQ(unseen->size(), 1u);
  EXPECT_EQ(unseen->front(), "list.csv:4: serial SN-99 was not seen");
  const auto made = rows(extras);
  ASSERT_TRUE(made);
  ASSERT_EQ(made->rows.size(), 2u);
  EXPECT_EQ(made->rows[0].at("name"), "gpu001");
  EXPECT_EQ(made->rows[0].at("bmc"), "https://10.1.0.3");
  EXPECT_EQ(made->rows[1].at("name"), "gpu002");
  EXPECT_EQ(made->rows[1].at("unit"), "12");
}

TEST_F(AdoptTest, wrongListsAreRefusedWithTheirLine) {
  auto refused = [&](const char* text) {
    auto done = applyList(registry, *parseList(text, "list.csv"), "list.csv", {.by = "alice"},
                          cluster, nullptr);
    return done ? std::string("accepted") : done.error().str();
  };
  EXPECT_THAT(refused("serial\nSN-7\nSN-7\n"),
              HasSubstr("list.csv:3: the machine of line 2 again"));
  EXPECT_THAT(refused("bmc_mac\nnonsense\n"), HasSubstr("no MAC"));
  registry.machines()[0].serial = "SN-7";
  const auto twice = applyList(registry, *parseList("serial\nSN-7\n", "list.csv"), "list.csv",
                               {.by = "alice"}, cluster, nullptr);
  EXPECT_THAT(twice->at(0), HasSubstr("2 machines have the serial SN-7"));
}

TEST_F(AdoptTest, whatIsANodeIsNotAdoptedAgain) {
  inventory::Node node;
  node.name = NodeName("gpu001");
  node.serial = "SN-3";
  node.address = *Ipv4::parse("10.20.9.9");
  cluster.nodes.push_back(node);
  EXPECT_EQ(approve(registry.machines()[1], {.by = "alice"}, cluster).error().code(),
            ErrorCode::Conflict);
  EXPECT_FALSE(approve(registry.machines()[2], {.node = "gpu001", .by = "alice"}, cluster))
      << "the name is taken";
  ASSERT_TRUE(approve(registry.machines()[2], {.by = "alice"}, cluster));
  const auto made = rows();
  ASSERT_EQ(made->rows.size(), 1u);
  EXPECT_EQ(made->rows[0].at("name"), "gpu002");
  EXPECT_EQ(made->rows[0].at("address"), "10.20.9.10") << "after the last node's";
}

TEST_F(AdoptTest, addressesAreOfTheSubnetOfTheRackOrOfTheRelay) {
  inventory::Subnet row_a{.name = "row-a",
                          .cidr = *Cidr::parse("10.21.0.0/24"),
                          .gateway = *Ipv4::parse("10.21.0.1"),
                          .racks = {"r1"}};
  row_a.dhcp_range = {*Ipv4::parse("10.21.0.2"), *Ipv4::parse("10.21.0.9")};
  cluster.networks[0].subnets = {row_a,
                                 {.name = "row-b",
                                  .cidr = *Cidr::parse("10.22.0.0/24"),
                                  .gateway = *Ipv4::parse("10.22.0.1")}};
  auto& machines = registry.machines();
  ASSERT_TRUE(approve(machines[0], {.rack = "r1", .by = "alice"}, cluster));
  machines[1].relay = "10.22.0.1";
  ASSERT_TRUE(approve(machines[1], {.by = "alice"}, cluster));
  ASSERT_TRUE(approve(machines[2], {.rack = "r9", .by = "alice"}, cluster));
  const auto made = rows();
  ASSERT_TRUE(made);
  std::map<std::string, std::string> addresses;
  for (const auto& row : made->rows) addresses[row.at("serial")] = row.at("address");
  EXPECT_EQ(addresses, (std::map<std::string, std::string>{{machines[0].serial, "10.21.0.10"},
                                                           {machines[1].serial, "10.22.0.2"}}))
      << "neither gateways nor what DHCP gives to unknown senders";
  ASSERT_EQ(made->left_out.size(), 1u);
  EXPECT_THAT(made->left_out[0], HasSubstr("its subnet is not known"));
  machines[2].relay = "0.0.0.0";
  EXPECT_EQ(rows()->rows.size(), 3u) << "heard in the controller's own part";
}

TEST_F(AdoptTest, namesAndAddressesRunOut) {
  cluster.node_files[0].names = {"gpu001"};
  for (auto& one : registry.machines()) ASSERT_TRUE(approve(one, {.by = "alice"}, cluster));
  EXPECT_EQ(rows()->left_out.size(), 2u);
  EXPECT_THAT(rows()->left_out[0], HasSubstr("no name is free"));
  EXPECT_FALSE(rowsFor(registry, cluster, "/inv/other.csv", {}))
      << "a file that the inventory does not read";
  cluster = test::discoveringCluster();
  cluster.networks[0].cidr = *Cidr::parse("10.20.0.0/30");
  for (auto& one : registry.machines()) one.node.clear();
  EXPECT_EQ(rows()->rows.size(), 1u) << "one address is the controller's, one is left";
}

}  // namespace
}  // namespace muster::discovery
