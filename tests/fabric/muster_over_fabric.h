// SPDX-License-Identifier: Apache-2.0
// muster's fabric phase over a simulated fabric, and an OpenSM that is not muster's.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "fabric/discovery/tools.h"
#include "fabric/fabric.h"
#include "fabric/opensm/opensm_log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fwd.h"
#include "tests/fabric/simulated_fabric.h"
#include "tests/fakes/plain_act_context.h"

#include <gtest/gtest.h>

namespace muster::fabric::test {

using lifecycle::Subject;

/// One muster: a phase made anew for the inventory as it is now, over the same simulated fabric.
class Muster {
 public:
  Muster(inventory::Cluster cluster, SimulatedFabric& fabric)
      : cluster_(std::move(cluster)),
        phase_(makeFabricPhase(cluster_, fabric.processes(), clock_, fabric.options())) {}

  lifecycle::Goal goal(const Subject& subject, std::string_view facet) {
    for (auto& goal : phase_->goals(cluster_, subject, {}))
      if (goal.facet.facet.str() == facet) return goal;
    ADD_FAILURE() << "no goal " << facet;
    return {};
  }
  std::string observed(const Subject& subject, std::string_view facet) {
    return valueOf(muster::test::runAsync(phase_->observe(subject), kLimit), facet);
  }
  std::string verified(const Subject& subject, std::string_view facet) {
    return valueOf(muster::test::runAsync(phase_->verify(actionOf(goal(subject, facet))), kLimit),
                   facet);
  }
  bool met(const Subject& subject, std::string_view facet) {
    return verified(subject, facet) == goal(subject, facet).want;
  }

  Result<lifecycle::Outcome> act(const Subject& subject, std::string_view facet) {
    return muster::test::runAsync(phase_->act(actionOf(goal(subject, facet)), context), kLimit);
  }
  /// "" when done, else why not.
  std::string tryTo(const Subject& subject, std::string_view facet) {
    auto outcome = act(subject, facet);
    if (!outcome) return "error: " + outcome.error().str();
    if (auto* blocked = std::get_if<lifecycle::Blocked>(&*outcome))
      return "blocked: " + blocked->why;
    return std::holds_alternative<lifecycle::Done>(*outcome) ? "" : "again";
  }
  void bringUp() {
    for (auto facet : {"fabric.sm", "fabric.partitions"}) {
      ASSERT_EQ(tryTo(whole, facet), "");
      ASSERT_EQ(verified(whole, facet), goal(whole, facet).want);
    }
  }

  const Subject whole = Subject::cluster();
  muster::test::PlainActContext context;

 private:
  static constexpr std::chrono::seconds kLimit{90};
  static lifecycle::Action actionOf(const lifecycle::Goal& goal) {
    lifecycle::Action action;
    action.facet = goal.facet;
    action.to = goal.want;
    return action;
  }
  static std::string valueOf(const Result<std::vector<lifecycle::Fact>>& facts,
                             std::string_view facet) {
    if (!facts) return "error: " + facts.error().str();
    for (const auto& fact : *facts)
      if (fact.facet.str() == facet) return fact.value;
    return "";
  }

  SystemClock clock_;
  inventory::Cluster cluster_;
  std::unique_ptr<lifecycle::Phase> phase_;
};

inline Subject node(const char* name) { return Subject(NodeName(name)); }

/// OpenSM with files of its own on another HCA than the controller's.
class OtherOpensm {
 public:
  OtherOpensm(SimulatedFabric& fabric, std::string_view hca, const std::string& conf,
              const std::vector<std::pair<std::string, std::string>>& files = {}) {
    auto options = fabric.options();
    options.tool_env["SIM_HOST"] = ibsimNodeId(hca);
    options.run_folder = folder_.path();
    for (const auto& [name, content] : files)
      EXPECT_TRUE(io::writeFileAtomic(folder_ / name, content));
    EXPECT_TRUE(io::writeFileAtomic(
        folder_ / "opensm.conf",
        conf +
            fmt::format(
                "log_file {0}/opensm.log\ndump_files_dir {0}\nforce_log_flush TRUE\nconsole off\n",
                folder_.path().string())));
    Tools tools(fabric.processes(), options);
    auto command = tools.command("opensm", {"-F", (folder_ / "opensm.conf").string()});
    command.env["OSM_CACHE_DIR"] = command.env["OSM_TMP_DIR"] = folder_.path().string();
    auto started = fabric.processes().start(command, folder_ / "out");
    EXPECT_TRUE(started);
    if (started) process_ = std::move(*started);
  }
  ~OtherOpensm() { process_->terminate(std::chrono::seconds(5)); }
  bool standsBy() {
    return eventually(
        [&] { return readSmLog(io::readFile(folder_ / "opensm.log").value_or("")).standby; });
  }
  std::filesystem::path folder() const { return folder_.path(); }

 private:
  muster::test::TempFolder folder_;
  std::unique_ptr<io::Child> process_;
};

}  // namespace muster::fabric::test
