// SPDX-License-Identifier: Apache-2.0
// The fabric phase over tools that answer from memory.
#include "fabric/phase.h"
#include "fabric/fabric.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/found_text.h"
#include "tests/fakes/scripted_programs.h"
#include "tests/run_async.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace muster::fabric::test {
namespace {

using lifecycle::Subject;
using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Nodes whose names sort behind those of switches, as deviations do.
inventory::Cluster namedBehindSwitches() {
  auto cluster = railCluster(3);
  for (auto& node : cluster.nodes) node.name = NodeName("n" + node.name.str().substr(3));
  cluster.fabrics["ib"].partitions[1].full_members = {"n[001-002]"};
  return cluster;
}

class FabricPhaseTest : public ::testing::Test {
 protected:
  FabricPhaseTest() {
    cluster_.fabrics["ib"].switch_firmware = "31.2012.1024";
    find(declared(cluster_));
    programs_.on(asker(), [this](const io::Command& command) -> Result<io::ProcessExit> {
      std::string out;
      std::istringstream lids(command.stdin_text);
      for (int lid; lids >> lid;) out += fmt::format("{} {}\n", lid, told_);
      return io::ProcessExit{0, out, {}};
    });
  }
  static std::string beside(const char* program) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / program;
  }
  static std::string asker() { return "ib " + beside("muster-switchfw"); }
  void find(const Topology& topology, bool with_lids = true) {
    auto text = foundText(topology);
    for (auto at = text.find("port 0 lid 2"); !with_lids && at != std::string::npos;
         at = text.find("port 0 lid 2"))
      text.replace(at, 12, "port 0 lid 0");
    programs_.on("ib " + beside("muster-ibnetdisc"), text);
  }
  std::string seen(const Subject& subject, std::string_view facet) {
    const auto facts = runAsync(phase_->observe(subject));
    EXPECT_TRUE(facts);
    for (const auto& fact : facts.value_or(std::vector<lifecycle::Fact>{}))
      if (fact.facet.str() == facet) return fact.value;
    return {};
  }

  inventory::Cluster cluster_ = namedBehindSwitches();
  muster::test::TempFolder folder_;
  muster::test::ScriptedPrograms programs_;
  FakeClock clock_;
  std::string told_ = "31.2012.1023 MT_0000000630";
  std::unique_ptr<lifecycle::Phase> phase_ =
      makeFabricPhase(cluster_, programs_, clock_, {folder_.path(), {"ib"}, {}});
};

TEST_F(FabricPhaseTest, aPulledCableIsNotTheFirmwareOfItsSwitch) {
  auto found = declared(cluster_);
  unplug(found, {"n001 mlx5_0", 1});
  find(found);
  EXPECT_THAT(seen(Subject(NodeName("n001")), "fabric.ports"),
              AllOf(HasSubstr("leaf-su1-r0 port 1"), Not(HasSubstr("install firmware"))));
}

TEST_F(FabricPhaseTest, cablesComeBeforeFirmware) {
  auto found = declared(cluster_);
  unplug(found, {"leaf-su1-r1", 9});
  find(found);
  EXPECT_THAT(seen(Subject::cluster(), "fabric.links"),
              StartsWith("5 deviations: plug in or replace the cable between leaf-su1-r1 port 9"));
}

TEST_F(FabricPhaseTest, aSwitchIsAskedOnceInMinutes) {
  told_ = "31.2012.1024";
  EXPECT_EQ(seen(Subject::cluster(), "fabric.links"), "as-declared");
  clock_.advance(std::chrono::minutes(5));
  EXPECT_EQ(seen(Subject::cluster(), "fabric.links"), "as-declared");
  EXPECT_EQ(programs_.count(asker()), 1u);
  told_ = "31.2012.1023";
  clock_.advance(std::chrono::minutes(6));
  EXPECT_THAT(seen(Subject::cluster(), "fabric.links"),
              StartsWith("4 deviations: install firmware"));
  EXPECT_EQ(programs_.count(asker()), 2u);
  told_ = "31.2012.1024";
  clock_.advance(std::chrono::minutes(2));
  EXPECT_EQ(seen(Subject::cluster(), "fabric.links"), "as-declared")
      << "what was put right is seen soon";
}

TEST_F(FabricPhaseTest, aSwitchWithoutALidAndAnExcusedOneAreNotAsked) {
  for (const char* name : {"leaf-su1-r0", "leaf-su1-r1", "spine-001", "spine-002"})
    cluster_.fabrics["ib"].exclude.push_back({name, 0, "under repair"});
  EXPECT_EQ(seen(Subject::cluster(), "fabric.links"), "as-declared");
  cluster_.fabrics["ib"].exclude.clear();
  clock_.advance(std::chrono::minutes(1));
  find(declared(cluster_), false);
  EXPECT_EQ(seen(Subject::cluster(), "fabric.links"), "as-declared");
  EXPECT_EQ(programs_.count(asker()), 0u);
}

TEST_F(FabricPhaseTest, slowAnswersDoNotMakeAPictureOld) {
  programs_.on(asker(), [this](const io::Command&) -> Result<io::ProcessExit> {
    clock_.advance(2 * kFresh);
    return fail(ErrorCode::Unavailable, "slow");
  });
  EXPECT_THAT(seen(Subject::cluster(), "fabric.links"), HasSubstr("4 deviations"));
  EXPECT_THAT(seen(Subject::cluster(), "fabric.links"), HasSubstr("4 deviations"));
  EXPECT_EQ(programs_.count(asker()), 1u) << "the second subject shares the picture";
}

}  // namespace
}  // namespace muster::fabric::test
