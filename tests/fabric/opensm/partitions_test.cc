// SPDX-License-Identifier: Apache-2.0
// A typo must never open the fabric: bad declarations are refused whole, and what is rendered is
// read back strictly.
#include "fabric/opensm/partitions.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::HasSubstr;

PartitionRules rulesOf(const inventory::Cluster& cluster) {
  return declaredPartitions(cluster, cluster.fabrics.at("ib"), declared(cluster)).value();
}

TEST(Partitions, resolveNodesToAllTheirHcas) {
  auto rules = rulesOf(railCluster(3));
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].name, "Default");
  EXPECT_EQ(rules[1].full.ports, (std::set<std::string>{"gpu001 mlx5_0", "gpu001 mlx5_1",
                                                        "gpu002 mlx5_0", "gpu002 mlx5_1"}));
}

TEST(Partitions, alwaysHaveADefaultRuleFirst) {
  auto cluster = railCluster(2);
  auto& partitions = cluster.fabrics["ib"].partitions;
  std::swap(partitions[0], partitions[1]);
  EXPECT_EQ(rulesOf(cluster)[0].pkey, kDefaultPkey);
  partitions.clear();
  auto rules = rulesOf(cluster);
  ASSERT_EQ(rules.size(), 1u);
  EXPECT_THAT(renderPartitions(rules),
              HasSubstr("Default=0x7fff, ipoib : ALL=limited, SELF=full ;"));
}

TEST(Partitions, areRefusedWholeForEachMistake) {
  struct Case {
    const char* words;
    std::function<void(inventory::Fabric&)> spoil;
  };
  const std::vector<Case> cases = {
      {"member gpu0O1 is not a node of the inventory",
       [](auto& f) { f.partitions[1].full_members = {"gpu0O1"}; }},
      {"not on fabric ib", [](auto& f) { f.partitions[1].full_members = {"login1"}; }},
      {"member 'gpu[1-'", [](auto& f) { f.partitions[1].full_members = {"gpu[1-"}; }},
      {"member all is not a node of the inventory",
       [](auto& f) { f.partitions[1].full_members = {"all"}; }},
      {"not within 0x1 and 0x7fff", [](auto& f) { f.partitions[1].pkey = 0x8010; }},
      {"not within 0x1 and 0x7fff", [](auto& f) { f.partitions[1].pkey = 0; }},
      {"used by another", [](auto& f) { f.partitions[1].pkey = 0x7fff; }},
      {"declared twice", [](auto& f) { f.partitions[1].name = "default"; }},
      {"may only hold", [](auto& f) { f.partitions[1].name = "batch:x;"; }},
      {"both full and limited", [](auto& f) { f.partitions[1].limited_members = {"gpu001"}; }},
      {"must have SELF", [](auto& f) { f.partitions[0].full_members.clear(); }},
  };
  for (const auto& one : cases) {
    auto cluster = railCluster(3);
    inventory::Node login;
    login.name = NodeName("login1");
    login.profile = "login";
    cluster.profiles["login"].name = "login";
    cluster.nodes.push_back(login);
    one.spoil(cluster.fabrics["ib"]);
    auto rules = declaredPartitions(cluster, cluster.fabrics["ib"], declared(cluster));
    ASSERT_FALSE(rules) << one.words;
    EXPECT_EQ(rules.error().code(), ErrorCode::InvalidInput);
    EXPECT_THAT(rules.error().text(), HasSubstr(one.words));
  }
}

TEST(Partitions, tellEveryProblemAtOnce) {
  auto cluster = railCluster(2);
  cluster.fabrics["ib"].partitions[1].full_members = {"nobody"};
  cluster.fabrics["ib"].partitions[1].pkey = 0;
  auto text = declaredPartitions(cluster, cluster.fabrics["ib"], declared(cluster)).error().text();
  EXPECT_THAT(text, HasSubstr("nobody"));
  EXPECT_THAT(text, HasSubstr("pkey 0x0"));
}

TEST(Partitions, giveEachPortTheTableThatIsDeclared) {
  auto rules = rulesOf(railCluster(3));
  EXPECT_EQ(tableOf(rules, "gpu001 mlx5_0", false), (PkeyTable{0x7fff, 0x8010}));
  EXPECT_EQ(tableOf(rules, "gpu003 mlx5_0", false), (PkeyTable{0x7fff}));
  EXPECT_EQ(tableOf(rules, "controller mlx5_0", true), (PkeyTable{0xffff}));
}

TEST(Partitions, leaveOutAPortWhoseGuidIsNotProven) {
  auto rules = withGuids(rulesOf(railCluster(2)), {{"gpu001 mlx5_0", "0x0000000000100003"}});
  EXPECT_EQ(rules[1].full.ports, (std::set<std::string>{"0x0000000000100003"}));
  EXPECT_EQ(tableOf(rules, "0x0000000000100009", false), (PkeyTable{0x7fff}));
}

TEST(Partitions, readBackWhatTheyRenderAlsoOverManyLines) {
  auto rules = rulesOf(railCluster(2));
  for (int i = 0; i < 100; ++i) rules[1].full.ports.insert(fmt::format("0x{:016x}", 0x1000 + i));
  std::erase_if(rules[1].full.ports,
                [](const std::string& port) { return port.starts_with("gpu"); });
  auto text = renderPartitions(rules);
  auto again = parsePartitions(text);
  ASSERT_TRUE(again) << again.error().str();
  EXPECT_EQ(*again, rules);
  EXPECT_GT(std::count(text.begin(), text.end(), '\n'), 4);
}

TEST(Partitions, refuseTextThatOpenSmWouldReadOtherwise) {
  const std::string head = "Default=0x7fff, ipoib : ALL=limited, SELF=full ;\n";
  struct Case {
    std::string text;
    const char* words;
  };
  const std::vector<Case> cases = {
      {"", "must start with a rule for Default"},
      {"batch=0x0010 : ALL=limited ;\n", "must start with a rule for Default"},
      {head + "batch=0x00zz10 : SELF=full ;\n", "line 2: '0x00zz10' is not a pkey"},
      {head + "batch=0x8010 : SELF=full ;\n", "not a pkey"},
      {head + "batch=16 : SELF=full ;\n", "not a pkey"},
      {head + "batch=0x10 : SELF=full\n", "no ';'"},
      {head + "batch=0x10 : SELF=ful ;\n", "is not MEMBER=full"},
      {head + "batch=0x10 : 0x1003=full ;\n", "is not a port GUID"},
      {head + "batch=0x10, rate=3 : SELF=full ;\n", "unknown flag"},
      {head + "batch=0x10 SELF=full ;\n", "not of the form"},
      {head + "batch=0x7fff : SELF=full ;\n", "contradict"},
      {head + "x=0x1 : " + std::string(3000, ' ') + "SELF=full ;\n", "too long"},
  };
  for (const auto& one : cases) {
    auto rules = parsePartitions(one.text);
    ASSERT_FALSE(rules) << one.text;
    EXPECT_THAT(rules.error().str(), HasSubstr(one.words));
  }
}

TEST(Partitions, digestChangesWithAnyTableAndWithNothingElse) {
  auto cluster = railCluster(3);
  auto topology = declared(cluster);
  auto before = tablesDigest(rulesOf(cluster), topology);
  cluster.fabrics["ib"].partitions[1].name = "other-name";
  EXPECT_EQ(tablesDigest(rulesOf(cluster), topology), before);
  cluster.fabrics["ib"].partitions[1].full_members = {"gpu[001-003]"};
  EXPECT_NE(tablesDigest(rulesOf(cluster), topology), before);
}

TEST(PkeyTables, widerIsWhoMayTalkToMore) {
  EXPECT_FALSE(isWider({0xffff, 0x8010}, {0xffff, 0x8010}));
  EXPECT_TRUE(isWider({0xffff}, {0x7fff})) << "a full member instead of a limited one";
  EXPECT_FALSE(isWider({0x7fff}, {0xffff})) << "the other way round somebody loses";
  EXPECT_TRUE(isWider({0x7fff, 0x0010}, {0x7fff})) << "another partition";
  EXPECT_FALSE(isWider({}, {0xffff}));
}

}  // namespace
}  // namespace muster::fabric::test
