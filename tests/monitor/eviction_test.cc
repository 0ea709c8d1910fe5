// SPDX-License-Identifier: Apache-2.0
// Who may not take jobs, and when that is too many.
#include "monitor/eviction.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "tests/monitor/pool_rig.h"

namespace muster::monitor::test {
namespace {

class Decide : public ::testing::Test {
 protected:
  void place(const std::string& node, std::string_view value, bool ordered = false,
             const std::string& reason = "") {
    facts_.put(factOf(node, kPoolFacet, std::string(value), poolEvidence(ordered, reason), {}));
  }
  void put(const std::string& node, std::string_view facet, std::string value,
           nlohmann::json evidence = nlohmann::json::object()) {
    facts_.put(factOf(node, facet, std::move(value), evidence, {}));
  }
  void fill(int nodes) {
    cluster_ = clusterOf(nodes);
    for (const auto& node : cluster_.nodes) {
      place(node.name.str(), kPoolIn);
      put(node.name.str(), "certificate", "valid:1");
    }
  }
  Decision decided() { return decide(cluster_, facts_, breakers_); }

  inventory::Cluster cluster_;
  FactSet facts_;
  BreakerStates breakers_;
};

TEST_F(Decide, theWorstReasonIsTheOneThatIsTold) {
  fill(4);
  put("gpu001", "certificate", "none");
  put("gpu001", "health.disk", "drain:disk.read-only@sda");
  put("gpu001", "health.gpu", "rma:gpu.remap-failure@0000:18:00.0");
  const auto decision = decided();
  ASSERT_EQ(decision.drain.size(), 1u);
  EXPECT_EQ(decision.drain[0].reason, "gpu.remap-failure@0000:18:00.0 (rma)");
  EXPECT_TRUE(decision.drain[0].quarantine);
}

TEST_F(Decide, aNodeThatTakesNoJobsNeedsNoDrain) {
  fill(4);
  for (const char* node : {"gpu001", "gpu002"}) put(node, "certificate", "none");
  place("gpu001", "out");
  place("gpu002", kPoolDrained, true, "muster: driver nvidia changes");
  const auto decision = decided();
  EXPECT_TRUE(decision.drain.empty());
  EXPECT_TRUE(decision.trips.empty());
  EXPECT_EQ(decision.in_trouble.size(), 2u);
}

TEST_F(Decide, aSilentNodeIsDrainedBecauseItWouldTakeJobsAsSoonAsItIsBack) {
  fill(4);
  place("gpu001", kPoolSilent);
  put("gpu001", "certificate", "none");
  EXPECT_EQ(decided().drain.size(), 1u);
}

TEST_F(Decide, somebodyElsesDrainIsTheirsToFinishAndOnesOwnIsCounted) {
  fill(20);
  put("gpu001", "certificate", "none");
  place("gpu001", kPoolIn, true, "bad fan");
  EXPECT_TRUE(decided().drain.empty());
  place("gpu001", kPoolIn, true, "muster: admission: it has no certificate");
  EXPECT_EQ(decided().drain.size(), 1u) << "its jobs are still waited for";
  put("gpu002", "certificate", "none");
  EXPECT_EQ(decided().drain.size(), 2u) << "two of twenty are a tenth";
  put("gpu003", "certificate", "none");
  const auto decision = decided();
  ASSERT_EQ(decision.trips.size(), 1u);
  EXPECT_EQ(decision.trips[0].would_be_out, 3);
  EXPECT_EQ(decision.trips[0].of, 20);
  EXPECT_EQ(decision.trips[0].allowed, 2);
  EXPECT_EQ(decision.drain.size(), 1u) << "only the one that was ordered already";
  EXPECT_EQ(decision.suppressed.size(), 2u);
}

TEST_F(Decide, anOpenBreakerStaysOpenForOneNodeToo) {
  fill(20);
  put("gpu002", "certificate", "none");
  breakers_["batch"] = {true, {NodeName("gpu009")}};
  EXPECT_TRUE(decided().drain.empty());
  breakers_["batch"] = {false, {NodeName("gpu002")}};
  EXPECT_EQ(decided().drain.size(), 1u);
}

TEST_F(Decide, aPoolThatCouldNotBeReadLeadsToNothing) {
  fill(4);
  facts_.forget(subjectOf("gpu001"), FacetName(std::string(kPoolFacet)));
  put("gpu001", "certificate", "none");
  const auto decision = decided();
  EXPECT_TRUE(decision.drain.empty());
  EXPECT_TRUE(decision.unknown.contains(NodeName("gpu001")));
}

TEST_F(Decide, inASmallPoolOneNodeMayGo) {
  fill(2);
  put("gpu001", "certificate", "none");
  EXPECT_EQ(decided().drain.size(), 1u);
  put("gpu002", "certificate", "none");
  EXPECT_TRUE(decided().drain.empty());
  cluster_.monitor->breaker.nodes = 0;
  cluster_.monitor->breaker.percent = 100;
  EXPECT_EQ(decided().drain.size(), 2u);
}

}  // namespace
}  // namespace muster::monitor::test
