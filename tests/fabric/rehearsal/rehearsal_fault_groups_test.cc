// SPDX-License-Identifier: Apache-2.0
// Which faults a rehearsal injects at once, and whether a comparison has named them all.
#include "fabric/compare/compare.h"
#include "fabric/rehearsal/rehearsal.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace muster::fabric::test {
namespace {

using ::testing::IsEmpty;
using ::testing::Not;

class FaultGroups : public ::testing::Test {
 protected:
  std::vector<std::vector<Fault>> groups(std::size_t together) {
    return faultGroups(
        faultsOf(declared_, cluster_.fabrics.at("ib"), {kAllFaults.begin(), kAllFaults.end()}),
        declared_, together);
  }
  /// The declared fabric with these faults in it.
  Topology with(const std::vector<Fault>& faults) const {
    auto found = declared_;
    for (const auto& fault : faults)
      for (const auto& link : fault.links) unplug(found, link.a);
    for (const auto& fault : faults)
      if (fault.kind == FaultKind::RailSwapped) {
        plug(found, fault.links[0].a, fault.links[1].b);
        plug(found, fault.links[1].a, fault.links[0].b);
      } else if (fault.kind == FaultKind::CablePulled) {
        for (const auto& link : fault.links)
          for (const auto& end : {link.a, link.b})
            if (!declared_.devices.at(end.node).is_switch) found.devices.erase(end.node);
      }
    return found;
  }

  inventory::Cluster cluster_ = [] {
    auto cluster = railCluster(8, 2, 4, 4, 2);
    cluster.fabrics["ib"].subnet_managers.clear();
    return cluster;
  }();
  Topology declared_ = declared(cluster_);
};

TEST_F(FaultGroups, holdEveryFaultOnce) {
  const auto all =
      faultsOf(declared_, cluster_.fabrics.at("ib"), {kAllFaults.begin(), kAllFaults.end()});
  std::multiset<std::string> wanted, grouped;
  for (const auto& fault : all) wanted.insert(std::string(toString(fault.kind)) + fault.name);
  for (const auto& group : groups(8))
    for (const auto& fault : group) grouped.insert(std::string(toString(fault.kind)) + fault.name);
  EXPECT_EQ(grouped, wanted);
  EXPECT_EQ(groups(1).size(), all.size());
  EXPECT_LT(groups(8).size(), all.size() / 2);
}

/// Uplinks fit together as spines allow; the places beside them are for cables of HCAs.
TEST_F(FaultGroups, areFew) {
  const auto cluster = scalableUnit(31, {"controller"});
  const auto unit = declared(cluster);
  const auto grouped =
      faultGroups(faultsOf(unit, cluster.fabrics.at("ib"), {FaultKind::CablePulled}), unit, 8);
  EXPECT_GE(grouped.size(), 64u);  // 256 uplinks, four spines
  EXPECT_LE(grouped.size(), 70u);
}

TEST_F(FaultGroups, shareNoSwitchAndNoHost) {
  for (const auto& group : groups(8)) {
    EXPECT_LE(group.size(), 8u);
    std::multiset<std::string> touched;
    for (const auto& fault : group) {
      EXPECT_EQ(fault.kind, group.front().kind);
      EXPECT_TRUE(group.size() == 1 || fault.kind == FaultKind::CablePulled ||
                  fault.kind == FaultKind::RailSwapped);
      if (fault.kind == FaultKind::RailSwapped) touched.insert(fault.name);
      if (fault.kind == FaultKind::CablePulled)
        for (const auto& end : {fault.links[0].a, fault.links[0].b})
          touched.emplace(hostOf(end.node));
    }
    for (const auto& name : touched) EXPECT_EQ(touched.count(name), 1u) << name;
  }
}

TEST_F(FaultGroups, areNamedFaultByFault) {
  std::size_t checked = 0;
  for (const auto& group : groups(8)) {
    if (group.front().kind != FaultKind::CablePulled &&
        group.front().kind != FaultKind::RailSwapped)
      continue;
    const auto found = with(group);
    EXPECT_THAT(misnamed(group, compare(declared_, found)), IsEmpty())
        << toString(group.front().kind) << " " << group.front().name;
    EXPECT_THAT(misnamed(group, compare(declared_, declared_)), Not(IsEmpty()));
    if (group.size() < 2) continue;
    auto fewer = group;
    fewer.pop_back();
    EXPECT_THAT(misnamed(fewer, compare(declared_, found)), Not(IsEmpty()))
        << "one too many was found";
    EXPECT_THAT(misnamed(group, compare(declared_, with(fewer))), Not(IsEmpty()))
        << "one was not found";
    ++checked;
  }
  EXPECT_GT(checked, 5u);
}

}  // namespace
}  // namespace muster::fabric::test
