// SPDX-License-Identifier: Apache-2.0
// Two InfiniBand fabrics at once: two OpenSMs over two ibsims, each with its own HCA of the
// controller, folder, partitions and facets.
#include "fabric/discovery/tools.h"
#include "fabric/fabric.h"
#include "fabric/fabric_diff.h"
#include "tests/fabric/clusters.h"
#include "tests/fabric/simulated_fabric.h"
#include "tests/fakes/plain_act_context.h"

#include "lifecycle/model/phase.h"

#include <gmock/gmock.h>

namespace muster::fabric::test {
namespace {

using lifecycle::Subject;
using muster::test::runAsync;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

class TwoFabrics : public ::testing::Test {
 protected:
  TwoFabrics()
      : ib_(topologyOf("ib"), "controller mlx5_0"),
        storage_(topologyOf("storage"), "controller mlx5_1"),
        phase_(makeFabricPhases(cluster_, *processes_, clock_,
                                [this](const std::string& name) { return optionsOf(name); })) {}

  Topology topologyOf(const std::string& name) {
    return declaredTopology(cluster_, cluster_.fabrics.at(name)).value();
  }
  FabricOptions optionsOf(const std::string& name) {
    auto options = (name == "ib" ? ib_ : storage_).options();
    options.other_folders = {(name == "ib" ? storage_ : ib_).options().run_folder};
    return options;
  }
  lifecycle::Action actionOf(const Subject& subject, const std::string& facet) {
    lifecycle::Action action;
    for (const auto& goal : phase_->goals(cluster_, subject, {}))
      if (goal.facet.facet.str() == facet) action.facet = goal.facet, action.to = goal.want;
    EXPECT_EQ(action.facet.facet.str(), facet) << "no such goal";
    return action;
  }
  /// "" when done, else why not.
  std::string tryTo(const Subject& subject, const std::string& facet) {
    const auto outcome = runAsync(phase_->act(actionOf(subject, facet), context_), kLimit);
    if (!outcome) return "error: " + outcome.error().str();
    if (const auto* blocked = std::get_if<lifecycle::Blocked>(&*outcome)) return blocked->why;
    return std::holds_alternative<lifecycle::Done>(*outcome) ? "" : "again";
  }
  bool met(const Subject& subject, const std::string& facet) {
    const auto action = actionOf(subject, facet);
    const auto facts = runAsync(phase_->verify(action), kLimit);
    if (!facts) return false;
    return std::any_of(facts->begin(), facts->end(), [&](const lifecycle::Fact& fact) {
      return fact.facet == action.facet.facet && fact.value == action.to;
    });
  }
  void bringUp() {
    for (const std::string name : {"ib", "storage"})
      for (const std::string facet : {"fabric.sm.", "fabric.partitions.", "fabric.links."}) {
        ASSERT_EQ(tryTo(whole_, facet + name), "");
        ASSERT_TRUE(met(whole_, facet + name)) << facet << name;
      }
  }
  static std::optional<pid_t> opensmOf(const SimulatedFabric& fabric) {
    return io::PidFile{fabric.options().run_folder / "opensm.pid"}.alive();
  }

  static constexpr std::chrono::seconds kLimit{120};
  inventory::Cluster cluster_ = twoFabrics(3);
  SystemClock clock_;
  std::unique_ptr<io::ProcessRunner> processes_ = io::makeProcessRunner();
  SimulatedFabric ib_, storage_;
  muster::test::PlainActContext context_;
  std::unique_ptr<lifecycle::Phase> phase_;
  const Subject whole_ = Subject::cluster(), node_ = Subject(NodeName("gpu001"));
};

TEST_F(TwoFabrics, haveASubnetManagerEach) {
  std::vector<std::string> facets;
  for (const auto& goal : phase_->goals(cluster_, whole_, {}))
    facets.push_back(goal.facet.facet.str());
  for (const auto& goal : phase_->goals(cluster_, node_, {}))
    facets.push_back(goal.facet.facet.str());
  EXPECT_THAT(facets,
              IsSupersetOf({"fabric.sm.ib", "fabric.sm.storage", "fabric.partitions.ib",
                            "fabric.links.storage", "fabric.ports.ib", "fabric.ports.storage"}));
  bringUp();
  const auto first = opensmOf(ib_), second = opensmOf(storage_);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first, second);
  for (const std::string name : {"ib", "storage"}) {
    EXPECT_TRUE(met(node_, "fabric.ports." + name));
    EXPECT_EQ(
        runAsync(diff(cluster_, *processes_, optionsOf(name), name), kLimit).value().exitCode(),
        DiffReport::kEqual);
  }
  const auto conf = io::readFile(storage_.options().run_folder / "opensm.conf").value();
  EXPECT_THAT(conf, HasSubstr(storage_.options().run_folder.string() + "/partitions.conf"));
  EXPECT_THAT(conf, Not(HasSubstr(ib_.options().run_folder.string())));

  // One of them dies: the other one is not touched.
  ::kill(*second, SIGKILL);
  ASSERT_TRUE(eventually([&] { return !opensmOf(storage_); }));
  EXPECT_FALSE(met(whole_, "fabric.sm.storage"));
  EXPECT_TRUE(met(whole_, "fabric.sm.ib"));
  EXPECT_EQ(tryTo(whole_, "fabric.sm.storage"), "");
  EXPECT_TRUE(met(whole_, "fabric.sm.storage"));
  EXPECT_EQ(opensmOf(ib_), first);
}

TEST_F(TwoFabrics, aCableOfOneIsNoDeviationOfTheOther) {
  bringUp();
  storage_.unlink({"gpu001 mlx5_8", 1});
  EXPECT_THAT(tryTo(node_, "fabric.ports.storage"),
              AllOf(HasSubstr("gpu001 mlx5_8"), HasSubstr("st-leaf-su1-r0")));
  EXPECT_FALSE(met(node_, "fabric.ports.storage"));
  EXPECT_TRUE(met(node_, "fabric.ports.ib"));
  EXPECT_TRUE(met(whole_, "fabric.links.ib"));
  EXPECT_FALSE(met(whole_, "fabric.links.storage"));
  // Looked at through the other's cables, nothing of it is there.
  const auto wrong = runAsync(diff(cluster_, *processes_, optionsOf("ib"), "storage"), kLimit);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->exitCode(), DiffReport::kDeviates);
}

TEST_F(TwoFabrics, toolsLookThroughTheHcaThatTheyAreTold) {
  auto options = storage_.options();
  options.local_hca = "ibsim0";  // as the simulator calls it
  const auto found = runAsync(discover(*processes_, options), kLimit);
  ASSERT_TRUE(found) << found.error().str();
  EXPECT_TRUE(found->devices.contains("gpu001 mlx5_8"));
  Tools tools(*processes_, options);
  for (const auto& topology :
       {runAsync(tools.discoverByTool(), kLimit), runAsync(tools.discoverByLibrary(), kLimit)}) {
    ASSERT_TRUE(topology) << topology.error().str();
    EXPECT_EQ(topology->links.size(), found->links.size());
  }
  options.local_hca = "mlx5_7";
  EXPECT_FALSE(runAsync(discover(*processes_, options), kLimit)) << "there is no such HCA";
}

}  // namespace
}  // namespace muster::fabric::test
