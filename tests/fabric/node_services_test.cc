// SPDX-License-Identifier: Apache-2.0
// Services of single nodes: what the controller wants, sends and believes.
#include "fabric/node_services.h"
#include "base/ip_address.h"
#include "fabric/fabric.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "fabric/phase.h"
#include "fabric/topology/topology.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/profile.h"
#include "tests/fabric/clusters.h"
#include "tests/fakes/fake_act_context.h"
#include "tests/fakes/fake_agent_gateway.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace muster::fabric::test {
namespace {

using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Subject;
using muster::test::runAsync;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// An agent that does what it is told and says so; a test may spoil what it says.
class NodeServices : public ::testing::Test {
 protected:
  explicit NodeServices(inventory::Cluster cluster = railCluster(3))
      : cluster_(std::move(cluster)) {
    for (std::size_t i = 0; i < cluster_.nodes.size(); ++i) {
      cluster_.nodes[i].address = Ipv4::parse(fmt::format("10.0.0.{}", i + 1)).value();
      agents_.boot(cluster_.nodes[i].name, wire::Mode::Disk);
    }
    agents_.answer(
        wire::TaskKind::NodeService,
        [this](const NodeName& node, const wire::AgentTask& task) -> Result<std::string> {
          if (refuses_)
            return fail(ErrorCode::NotFound,
                        "this node has no usr/sbin/opensm: add the package opensm to the image of "
                        "this node");
          const auto params = json::parse(task.params);
          said_[node]["node-service." + params.at("service").get<std::string>()] =
              params.at("value").get<std::string>();
          return std::string("{}");
        });
    agents_.answer(
        wire::TaskKind::Probe,
        [this](const NodeName& node, const wire::AgentTask& task) -> Result<std::string> {
          json out = json::object();
          const auto params = json::parse(task.params);
          for (const auto& probe : params.at("probes"))
            if (const auto at = said_[node].find(probe); at != said_[node].end())
              out[at->first] = at->second;
          return out.dump();
        });
  }

  std::unique_ptr<lifecycle::Phase> phase() {
    return makeNodeServicesPhase(cluster_, agents_, clock_, [this](const std::string&) {
      return FabricOptions{folder_.path(), {}, {}};
    });
  }
  std::optional<Goal> goal(const char* node, std::string_view facet) {
    for (auto& goal : phase()->goals(cluster_, Subject(NodeName(node)), {}))
      if (goal.facet.facet.str() == facet) return goal;
    return std::nullopt;
  }
  std::string observed(const char* node, std::string_view facet) {
    const auto phase = this->phase();
    const auto facts = runAsync(phase->observe(Subject(NodeName(node))));
    if (!facts) return "error: " + facts.error().str();
    for (const auto& fact : *facts)
      if (fact.facet.str() == facet) return fact.value;
    return "nothing";
  }
  /// "" when done, else why not.
  std::string act(const char* node, std::string_view facet) {
    const auto phase = this->phase();
    lifecycle::Action action;
    action.facet = {Subject(NodeName(node)), FacetName(std::string(facet))};
    const auto outcome = runAsync(phase->act(action, context_));
    if (!outcome) return "error: " + outcome.error().str();
    if (const auto* blocked = std::get_if<Blocked>(&*outcome)) return "blocked: " + blocked->why;
    if (const auto* again = std::get_if<lifecycle::Again>(&*outcome))
      return "again: " + again->waiting_for;
    return "";
  }
  bool met(const char* node, std::string_view facet) {
    return observed(node, facet) == goal(node, facet)->want;
  }

  inventory::Cluster cluster_;
  muster::test::FakeAgentGateway agents_;
  FakeClock clock_;
  muster::test::FakeActContext context_;
  muster::test::TempFolder folder_;
  std::map<NodeName, std::map<std::string, std::string>> said_;
  bool refuses_ = false;
};

class StandbyManager : public NodeServices {
 protected:
  StandbyManager() { cluster_.fabrics.at("ib").subnet_managers = {"controller", "gpu002"}; }
  void learn(const std::string& guid) {
    KnownGuids known;
    known.hcas["gpu002 mlx5_0"] = guid;
    known.hcas[std::string(kControllerHca)] = "0x0000000000000001";
    ASSERT_TRUE(io::writeFileAtomic(folder_ / "guids.json", known.toJson()));
  }
};

TEST_F(StandbyManager, waitsUntilItsGuidIsKnown) {
  ASSERT_TRUE(goal("gpu002", kOpensm));
  EXPECT_FALSE(goal("gpu001", kOpensm));
  EXPECT_EQ(goal("gpu002", kOpensm)->disruption, lifecycle::Disruption::None);
  EXPECT_THAT(act("gpu002", kOpensm),
              AllOf(StartsWith("blocked"), HasSubstr("was never seen at its declared port")));
  EXPECT_THAT(observed("gpu002", kOpensm), HasSubstr("not known"));
}

TEST_F(StandbyManager, getsItsFilesAndTheListOfLids) {
  learn("0x0000000000000021");
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "guid2lid", "0x1 1 1\n"));
  EXPECT_EQ(observed("gpu002", kOpensm), "absent");
  ASSERT_EQ(act("gpu002", kOpensm), "");
  EXPECT_TRUE(met("gpu002", kOpensm)) << observed("gpu002", kOpensm);
  const auto tasks = agents_.submitted(NodeName("gpu002"), wire::TaskKind::NodeService);
  ASSERT_EQ(tasks.size(), 1u);
  const auto files = json::parse(tasks[0].params).at("files");
  EXPECT_THAT(files.at("opensm.conf").get<std::string>(), HasSubstr("guid 0x0000000000000021"));
  EXPECT_THAT(files.at("opensm.conf").get<std::string>(), HasSubstr("sm_priority 13"));
  EXPECT_EQ(files.at("guid2lid"), "0x1 1 1\n");
  EXPECT_THAT(files.at("muster-opensm.service").get<std::string>(),
              HasSubstr("ExecStartPre=/usr/bin/test -s /etc/muster/opensm/partitions.conf"));
}

TEST_F(StandbyManager, anExchangedHcaMakesItsFilesOutdated) {
  learn("0x0000000000000021");
  ASSERT_EQ(act("gpu002", kOpensm), "");
  learn("0x0000000000000099");
  EXPECT_EQ(observed("gpu002", kOpensm), "outdated");
  context_.recorded.clear();
  context_.intent = "intent-2";
  ASSERT_EQ(act("gpu002", kOpensm), "");
  EXPECT_TRUE(met("gpu002", kOpensm));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "guid2lid", "0x1 7 7\n"));
  EXPECT_TRUE(met("gpu002", kOpensm))
      << "the list grows with every new port; the standby keeps its own";
}

TEST_F(StandbyManager, changedPartitionsReachIt) {
  learn("0x0000000000000021");
  ASSERT_EQ(act("gpu002", kOpensm), "");
  cluster_.fabrics.at("ib").partitions[1].full_members = {"gpu001"};
  EXPECT_EQ(observed("gpu002", kOpensm), "outdated");
}

TEST_F(StandbyManager, theNodesWordsAreTold) {
  learn("0x0000000000000021");
  refuses_ = true;
  EXPECT_THAT(act("gpu002", kOpensm),
              AllOf(StartsWith("blocked"), HasSubstr("add the package opensm")));
  EXPECT_EQ(context_.findings.size(), 1u);
  refuses_ = false;
  EXPECT_EQ(act("gpu002", kOpensm), "") << "a task that failed is begun anew";
}

TEST_F(StandbyManager, aControllerThatDiedFindsItsTask) {
  learn("0x0000000000000021");
  ASSERT_EQ(act("gpu002", kOpensm), "");
  ASSERT_EQ(act("gpu002", kOpensm), "");  // with the operation that it recorded
  EXPECT_EQ(agents_.submitted(NodeName("gpu002"), wire::TaskKind::NodeService).size(), 1u);
}

class NvlinkDomainTest : public NodeServices {
 protected:
  NvlinkDomainTest() {
    cluster_.fabrics.at("ib").nvlink_domains = {{"rack1", {"gpu001", "gpu002", "gpu003"}}};
    for (const auto& node : cluster_.nodes) {
      said_[node.name]["imex.state"] = "UP nodes=3";
      said_[node.name]["nvlink.domain"] = "0a1b.1";
      auto state = *agents_.state(node.name);
      state.probes["nvlink.domain"] = "0a1b.1";
      agents_.setState(state);
    }
  }
};

TEST_F(NvlinkDomainTest, allNodesGetTheSameFile) {
  ASSERT_EQ(act("gpu001", kImex), "");
  context_.recorded.clear();
  context_.intent = "intent-2";
  ASSERT_EQ(act("gpu003", kImex), "");
  for (const char* node : {"gpu001", "gpu003"}) {
    EXPECT_EQ(
        json::parse(agents_.submitted(NodeName(node), wire::TaskKind::NodeService).at(0).params)
            .at("files")
            .at("nodes_config.cfg"),
        "10.0.0.1\n10.0.0.2\n10.0.0.3\n");
    EXPECT_TRUE(met(node, kImex)) << observed(node, kImex);
  }
  EXPECT_EQ(goal("gpu001", kImex)->disruption, lifecycle::Disruption::Drain);
}

TEST_F(NvlinkDomainTest, anotherMemberMeansAnotherFileAndAnotherStart) {
  ASSERT_EQ(act("gpu001", kImex), "");
  const auto before = goal("gpu001", kImex)->want;
  cluster_.fabrics.at("ib").nvlink_domains[0].nodes.pop_back();
  EXPECT_NE(goal("gpu001", kImex)->want, before);
  EXPECT_EQ(observed("gpu001", kImex), "outdated");
}

TEST_F(NvlinkDomainTest, theDomainIsUpWhenAllAgree) {
  EXPECT_TRUE(met("gpu001", kNvlink)) << observed("gpu001", kNvlink);
  said_[NodeName("gpu001")]["imex.state"] = "DEGRADED: 10.0.0.2 UNAVAILABLE";
  EXPECT_EQ(observed("gpu001", kNvlink), "imex: DEGRADED: 10.0.0.2 UNAVAILABLE");
  EXPECT_THAT(act("gpu001", kNvlink), AllOf(StartsWith("again"), HasSubstr("UNAVAILABLE")));
  said_[NodeName("gpu001")]["imex.state"] = "UP nodes=2";
  EXPECT_EQ(observed("gpu001", kNvlink), "imex: UP nodes=2") << "one is not among them";
  said_[NodeName("gpu001")].erase("imex.state");
  EXPECT_EQ(observed("gpu001", kNvlink), "imex: did not answer");
}

TEST_F(NvlinkDomainTest, aTrayOfAnotherDomainIsNamed) {
  auto state = *agents_.state(NodeName("gpu003"));
  state.probes["nvlink.domain"] = "ffff.1";
  agents_.setState(state);
  EXPECT_EQ(observed("gpu001", kNvlink), "gpus: gpu003 is in ffff.1, this node in 0a1b.1");
  said_[NodeName("gpu001")]["nvlink.domain"] =
      "none: 0000:18:00.0 is not registered (state 2, status 0)";
  EXPECT_THAT(observed("gpu001", kNvlink), HasSubstr("not registered"));
}

TEST_F(NvlinkDomainTest, aNodeWithoutAnAddressIsSaidBeforeAnythingIsDone) {
  cluster_.nodes[1].address = Ipv4();
  ASSERT_TRUE(goal("gpu001", kImex));
  EXPECT_THAT(goal("gpu001", kImex)->blocked, HasSubstr("gpu002 has no address"));
  EXPECT_THAT(act("gpu001", kImex), HasSubstr("gpu002 has no address"));
}

TEST_F(NvlinkDomainTest, anActionThatNobodyAsksForAnyMoreIsRefused) {
  cluster_.fabrics.at("ib").nvlink_domains.clear();
  EXPECT_THAT(act("gpu001", kImex), HasSubstr("no longer requires fabric.imex of gpu001"));
  EXPECT_THAT(act("gpu001", kRoce), HasSubstr("no longer requires"));
}

TEST_F(NvlinkDomainTest, nobodyElseIsAsked) {
  cluster_.fabrics.at("ib").nvlink_domains[0].nodes = {"gpu001"};
  EXPECT_THAT(phase()->goals(cluster_, Subject(NodeName("gpu002")), {}), IsEmpty());
  EXPECT_THAT(phase()->goals(cluster_, Subject::cluster(), {}), IsEmpty());
}

class ManagerKeys : public NodeServices {
 protected:
  ManagerKeys() {
    cluster_.fabrics.clear();  // no InfiniBand is needed for NVSwitch
    auto& profile = cluster_.profiles.at("gpu-node");
    profile.fabric.clear();
    profile.drivers = {"nvidia", "fm"};
    cluster_.drivers["nvidia"] = {.name = "nvidia"};
    cluster_.drivers["fm"] = {.name = "fm",
                              .preset = "fabric-manager",
                              .fabric_manager = {{"FABRIC_MODE", "0"}, {"LOG_LEVEL", "4"}}};
  }
};

TEST_F(ManagerKeys, areSentAfterTheDriversAndBelievedWhenReadBack) {
  const auto wanted = goal("gpu001", kManager);
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->disruption, lifecycle::Disruption::Drain) << "a restart ends CUDA jobs";
  EXPECT_THAT(wanted->after, Contains(lifecycle::Stage::Drivers));
  EXPECT_EQ(observed("gpu001", kManager), "absent");
  ASSERT_EQ(act("gpu001", kManager), "");
  const auto params =
      json::parse(agents_.submitted(NodeName("gpu001"), wire::TaskKind::NodeService).at(0).params);
  EXPECT_EQ(params.at("service"), "fabric-manager");
  EXPECT_EQ(params.at("settings"), (json{{"FABRIC_MODE", "0"}, {"LOG_LEVEL", "4"}}));
  EXPECT_TRUE(met("gpu001", kManager)) << observed("gpu001", kManager);
  said_[NodeName("gpu001")]["node-service.fabric-manager"] = "changed: FABRIC_MODE";
  EXPECT_EQ(observed("gpu001", kManager), "changed: FABRIC_MODE");
}

TEST_F(ManagerKeys, anotherValueIsAnotherGoal) {
  const auto before = goal("gpu001", kManager)->want;
  ASSERT_EQ(act("gpu001", kManager), "");
  cluster_.drivers.at("fm").fabric_manager["FABRIC_MODE"] = "1";
  EXPECT_NE(goal("gpu001", kManager)->want, before);
  EXPECT_EQ(observed("gpu001", kManager), "outdated");
  cluster_.drivers.at("fm").fabric_manager.clear();
  EXPECT_FALSE(goal("gpu001", kManager)) << "without keys the packaged file stays as it is";
}

class RoceNodes : public NodeServices {
 protected:
  RoceNodes() {
    auto& fabric = cluster_.fabrics.at("ib");
    fabric.roce = inventory::Roce{};
    fabric.subnet_managers.clear();
    fabric.partitions.clear();
    const json pfc = {{"pfc_cap", 8},
                      {"prio_pfc", {false, false, false, true, false, false, false, false}}};
    for (int rail : {0, 1})
      says_[fmt::format("mlx5_{}", rail)] = {
          {"interface", fmt::format("eth{}", rail)},
          {"mtu", 9000},
          {"app", {{"dscp_prio", {{26, 3}, {48, 6}}}}},
          {"pfc", pfc},
          {"traffic_class", 106},
          {"neighbour", {{"switch", fmt::format("leaf-su1-r{}", rail)}, {"port", "Ethernet0"}}}};
  }
  std::vector<std::string> problems() {
    return roceProblems(cluster_, cluster_.fabrics.at("ib"), declared(cluster_),
                        *cluster_.findNode(NodeName("gpu001")), says_.dump())
        .value();
  }
  json says_ = json::object();
};

TEST_F(RoceNodes, aDeclarationWithAnErrorIsSaidAtTheGoal) {
  cluster_.fabrics.at("ib").sus = 0;
  ASSERT_TRUE(goal("gpu001", kRoce)) << "gates wait for it";
  EXPECT_THAT(goal("gpu001", kRoce)->blocked, HasSubstr("must be at least 1"));
  said_[NodeName("gpu001")]["roce.marking"] = says_.dump();
  EXPECT_THAT(observed("gpu001", kRoce), HasSubstr("must be at least 1"));
  EXPECT_FALSE(met("gpu001", kRoce));
}

TEST_F(RoceNodes, agreementIsNoProblem) {
  EXPECT_THAT(problems(), IsEmpty());
  says_["mlx5_0"]["neighbour"]["port"] = "swp1";
  EXPECT_THAT(problems(), IsEmpty()) << "Cumulus counts ports, SONiC lanes";
}

TEST_F(RoceNodes, eachDisagreementIsNamed) {
  const auto only = [this](const char* pointer, json value) {
    const auto before = says_;
    says_[json::json_pointer(pointer)] = std::move(value);
    auto out = problems();
    says_ = before;
    return out;
  };
  EXPECT_THAT(only("/mlx5_0/mtu", 1500), ElementsAre("mlx5_0: the MTU is 1500 instead of 9000"));
  EXPECT_THAT(only("/mlx5_0/app", json::object()), Contains("mlx5_0: it ignores DSCP"));
  EXPECT_THAT(only("/mlx5_1/traffic_class", 0),
              ElementsAre("mlx5_1: RDMA has traffic class 0 instead of 106"));
  EXPECT_THAT(
      only("/mlx5_1/neighbour/switch", "leaf-su1-r0"),
      ElementsAre("mlx5_1: is cabled to leaf-su1-r0 Ethernet0, declared is leaf-su1-r1 port 1"));
  EXPECT_THAT(
      only("/mlx5_1/neighbour/port", "Ethernet4"),
      ElementsAre("mlx5_1: is cabled to leaf-su1-r1 Ethernet4, declared is leaf-su1-r1 port 1"));
  EXPECT_THAT(only("/mlx5_0/app", {{"error", "dcb ended with 95: Operation not supported"}}),
              ElementsAre(HasSubstr("Operation not supported")));
  says_.erase("mlx5_1");
  EXPECT_THAT(problems(), ElementsAre(HasSubstr("mlx5_1: it does not exist")));
  says_["mlx5_0"].erase("neighbour");
  EXPECT_THAT(problems(), Contains(HasSubstr("no LLDP neighbor was received")));
}

TEST_F(RoceNodes, theGidThatNcclUsesMustBeARoutedOneOfVersion2) {
  auto& gids = says_["mlx5_0"]["gids"];
  gids = {{"0", {{"gid", "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"}, {"type", "IB/RoCE v1"}}},
          {"1", {{"gid", "fe80:0000:0000:0000:0e42:a1ff:fe00:0001"}, {"type", "RoCE v2"}}},
          {"2", {{"gid", "0000:0000:0000:0000:0000:ffff:0a01:0001"}, {"type", "IB/RoCE v1"}}},
          {"3", {{"gid", "0000:0000:0000:0000:0000:ffff:0a01:0001"}, {"type", "RoCE v2"}}}};
  EXPECT_THAT(problems(), IsEmpty()) << "mlx5's own order";
  auto& roce = *cluster_.fabrics.at("ib").roce;
  roce.gid_index = 2;
  EXPECT_THAT(problems(), ElementsAre("mlx5_0: GID 2 (gid_index, which NCCL uses) is IB/RoCE v1 "
                                      "0000:0000:0000:0000:0000:ffff:0a01:0001; RoCE v2 of a "
                                      "routed address is 3: set gid_index"));
  roce.gid_index = 1;
  EXPECT_THAT(problems(),
              ElementsAre(HasSubstr("GID 1 (gid_index, which NCCL uses) is RoCE v2 fe80:")))
      << "no switch routes it";
  roce.gid_index = 3;
  gids.erase("3");
  gids.erase("2");
  EXPECT_THAT(problems(),
              ElementsAre(AllOf(HasSubstr("GID 3 (gid_index, which NCCL uses) is empty"),
                                HasSubstr("check that the interface has an address"))));
}

TEST_F(RoceNodes, whatDcbCannotSayHidesNothingElse) {
  says_["mlx5_0"]["pfc"] = {{"error", "Operation not supported"}};
  says_["mlx5_0"]["gids"] = json::object();
  says_["mlx5_0"]["mtu"] = 1500;
  says_["mlx5_0"]["neighbour"]["port"] = "Ethernet4";
  EXPECT_THAT(problems(), ElementsAre("mlx5_0: dcb does not answer: Operation not supported",
                                      "mlx5_0: the MTU is 1500 instead of 9000", HasSubstr("GID 3"),
                                      HasSubstr("is cabled to")));
}

TEST_F(RoceNodes, aSwitchPortWithASmallerMtuIsNamed) {
  says_["mlx5_0"]["neighbour"]["frame_bytes"] = 9216;
  EXPECT_THAT(problems(), IsEmpty()) << "more than needed is well";
  says_["mlx5_0"]["neighbour"]["frame_bytes"] = 1500;
  EXPECT_THAT(problems(), ElementsAre("mlx5_0: leaf-su1-r0 Ethernet0 accepts frames of 1500 bytes, "
                                      "hosts send 9000: correct the MTU of that port"));
}

TEST_F(RoceNodes, packetsOfFullSizeMustReachThePeersThatHaveTold) {
  ASSERT_EQ(act("gpu001", kRoce), "");
  context_.recorded.clear();
  context_.intent = "intent-2";
  ASSERT_EQ(act("gpu002", kRoce), "");
  const auto phase = this->phase();  // the addresses are what it has heard
  const auto observed = [&](const char* node) {
    const auto facts = runAsync(phase->observe(Subject(NodeName(node))));
    return facts && !facts->empty() ? facts->front().value : "nothing";
  };
  auto other = says_;
  says_["mlx5_0"]["address"] = "10.1.0.1";
  other["mlx5_0"]["address"] = "10.1.0.2";
  // The second node hangs at the second ports.
  for (int rail : {0, 1}) other[fmt::format("mlx5_{}", rail)]["neighbour"]["port"] = "Ethernet4";
  said_[NodeName("gpu001")]["roce.marking"] = says_.dump();
  said_[NodeName("gpu002")]["roce.marking"] = other.dump();
  said_[NodeName("gpu001")]["roce.path.mlx5_0.10.1.0.2"] = "blocked 9000";
  EXPECT_EQ(observed("gpu001"), "as-declared") << "nobody else has told an address yet";
  said_[NodeName("gpu002")]["roce.path.mlx5_0.10.1.0.1"] = "silent: ping ended with 1";
  EXPECT_EQ(observed("gpu002"), "as-declared")
      << "a peer that is off is no finding about this node";
  EXPECT_EQ(observed("gpu001"),
            "mlx5_0: packets of 9000 bytes do not reach gpu002 (10.1.0.2), small ones do: a switch "
            "between them has a smaller MTU");
  said_[NodeName("gpu001")]["roce.path.mlx5_0.10.1.0.2"] = "passes 9000";
  EXPECT_EQ(observed("gpu001"), "as-declared");
}

TEST_F(RoceNodes, theScriptIsSentAndReadBack) {
  ASSERT_TRUE(goal("gpu001", kRoce));
  EXPECT_EQ(observed("gpu001", kRoce), "absent");
  ASSERT_EQ(act("gpu001", kRoce), "");
  const auto files =
      json::parse(agents_.submitted(NodeName("gpu001"), wire::TaskKind::NodeService).at(0).params)
          .at("files");
  EXPECT_THAT(files.at("roce.sh").get<std::string>(), HasSubstr("for device in mlx5_0 mlx5_1; do"));
  EXPECT_THAT(observed("gpu001", kRoce), HasSubstr("not known"))
      << "that the script ran says nothing of what the NIC does";
  said_[NodeName("gpu001")]["roce.marking"] = says_.dump();
  EXPECT_TRUE(met("gpu001", kRoce)) << observed("gpu001", kRoce);
  says_["mlx5_0"]["mtu"] = 1500;
  said_[NodeName("gpu001")]["roce.marking"] = says_.dump();
  EXPECT_EQ(observed("gpu001", kRoce), "mlx5_0: the MTU is 1500 instead of 9000");
}

TEST_F(RoceNodes, congestionControlIsReadBack) {
  says_["mlx5_0"]["ecn"] = {{"roce_np", {3}}, {"roce_rp", {3}}, {"cnp_dscp", 48}};
  EXPECT_THAT(problems(), IsEmpty());
  says_["mlx5_0"]["ecn"]["roce_rp"] = json::array();
  EXPECT_THAT(problems(),
              ElementsAre("mlx5_0: ECN's reaction point (roce_rp) is off for priority 3"));
  says_["mlx5_0"]["ecn"] = {{"roce_np", {0}}, {"cnp_dscp", 0}};
  EXPECT_THAT(problems(),
              ElementsAre("mlx5_0: ECN's notification point (roce_np) is off for priority 3",
                          "mlx5_0: congestion notifications have DSCP 0 instead of 48"));
}

TEST_F(RoceNodes, whatOnlyOthersCanMendDrainsNobodyAndStartsNothing) {
  const auto sent = [this] {
    return agents_.submitted(NodeName("gpu001"), wire::TaskKind::NodeService).size();
  };
  const auto disruption = [this] {
    lifecycle::FactSet facts;
    const auto phase = this->phase();
    const auto seen = runAsync(phase->observe(Subject(NodeName("gpu001"))));
    for (const auto& fact : seen.value()) facts.put(fact);
    for (const auto& one : phase->goals(cluster_, Subject(NodeName("gpu001")), facts))
      if (one.facet.facet.str() == kRoce) return one.disruption;
    return lifecycle::Disruption::None;
  };
  ASSERT_EQ(act("gpu001", kRoce), "");
  context_.recorded.clear();
  context_.intent = "intent-2";
  says_["mlx5_1"]["neighbour"]["switch"] = "leaf-su1-r0";
  said_[NodeName("gpu001")]["roce.marking"] = says_.dump();
  EXPECT_EQ(act("gpu001", kRoce),
            "blocked: mlx5_1: is cabled to leaf-su1-r0 Ethernet0, declared is leaf-su1-r1 port 1");
  EXPECT_EQ(sent(), 1u);
  EXPECT_EQ(disruption(), lifecycle::Disruption::None);
  says_["mlx5_0"]["mtu"] = 1500;
  said_[NodeName("gpu001")]["roce.marking"] = says_.dump();
  EXPECT_EQ(disruption(), lifecycle::Disruption::Drain);
  EXPECT_EQ(act("gpu001", kRoce), "");
  EXPECT_EQ(sent(), 2u) << "the marking is done again";
}

TEST_F(RoceNodes, needNoSubnetManager) {
  const auto processes = io::makeProcessRunner();
  const auto fabric_phase = makeFabricPhase(cluster_, *processes, clock_, {folder_.path(), {}, {}});
  EXPECT_THAT(fabric_phase->goals(cluster_, Subject::cluster(), {}), IsEmpty());
  EXPECT_THAT(fabric_phase->goals(cluster_, Subject(NodeName("gpu001")), {}), IsEmpty());
}

TEST(PortNames, areThoseOfTheSwitchesSystem) {
  for (const char* name : {"12", "swp12", "Ethernet44", "Eth1/12", "Ethernet1/12", "Ethernet12/1"})
    EXPECT_TRUE(isPortName(name, 12)) << name;
  for (const char* name : {"", "1", "swp1", "swp121", "Ethernet12", "Eth1/1", "Ethernet1/1"})
    EXPECT_FALSE(isPortName(name, 12)) << name;
}

class RoceBesideInfiniBand : public NodeServices {
 protected:
  RoceBesideInfiniBand() : NodeServices(twoFabrics(3)) {
    auto& storage = cluster_.fabrics.at("storage");
    storage.subnet_managers.clear();
    storage.roce = inventory::Roce{};
  }
};

TEST_F(RoceBesideInfiniBand, setsTheNicsOfTheRoceFabricAlone) {
  ASSERT_TRUE(goal("gpu001", kRoce));
  EXPECT_THAT(goal("gpu001", kRoce)->why, HasSubstr("fabric storage declares RoCE"));
  const auto& profile = cluster_.profiles.at("gpu-node");
  const auto script = roceFiles(profile, {&cluster_.fabrics.at("storage")}).files.at("roce.sh");
  EXPECT_THAT(script, HasSubstr("for device in mlx5_8; do"));
  EXPECT_EQ(act("gpu001", kRoce), "");
  said_[NodeName("gpu001")]["roce.marking"] = "{}";
  EXPECT_THAT(observed("gpu001", kRoce), HasSubstr("mlx5_8: it does not exist"))
      << "the HCAs of the InfiniBand fabric are not looked at";
}

TEST_F(RoceBesideInfiniBand, twoRoceFabricsHaveTheirOwnSettings) {
  auto& compute = cluster_.fabrics.at("ib");
  compute.subnet_managers.clear();
  compute.partitions.clear();
  compute.roce = inventory::Roce{};
  compute.roce->dscp = 24;
  const auto script =
      roceFiles(cluster_.profiles.at("gpu-node"), {&compute, &cluster_.fabrics.at("storage")})
          .files.at("roce.sh");
  EXPECT_THAT(script,
              AllOf(HasSubstr("for device in mlx5_0 mlx5_1; do"), HasSubstr("dscp-prio 24:3"),
                    HasSubstr("for device in mlx5_8; do"), HasSubstr("dscp-prio 26:3")));
  ASSERT_TRUE(io::writeFileAtomic(folder_ / "roce.sh", script));
  const auto read = io::runBlocking({"sh", {"-n", (folder_ / "roce.sh").string()}});
  ASSERT_TRUE(read);
  EXPECT_EQ(read->code, 0) << read->err;
}

TEST_F(RoceBesideInfiniBand, aStandbyWaitsForThePartitionsOfItsFabric) {
  auto& storage = cluster_.fabrics.at("storage");
  storage.roce.reset();
  storage.subnet_managers = {"controller", "gpu002"};
  const auto wanted = goal("gpu002", kOpensm);
  ASSERT_TRUE(wanted);
  EXPECT_THAT(wanted->why, HasSubstr("fabric storage declares a subnet manager on gpu002"));
  ASSERT_FALSE(wanted->needs.empty());
  EXPECT_EQ(wanted->needs.front().facet.str(), "fabric.partitions.storage");
  EXPECT_FALSE(goal("gpu001", kOpensm));
}

}  // namespace
}  // namespace muster::fabric::test
