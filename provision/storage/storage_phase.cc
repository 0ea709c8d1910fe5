// SPDX-License-Identifier: Apache-2.0
// The storage phase: facet storage.NAME of every file system that a node's profile mounts. One task
// of the agent installs, mounts and measures; a probe of the agent tells whether what is mounted is
// still that.
#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/model/fact_source.h"
#include "provision/agent_task.h"
#include "provision/facets.h"
#include "provision/provision.h"
#include "provision/storage/storage.h"

#include "base/io/crypto.h"
#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/mounts.h"
#include "inventory/model/profile.h"
#include "wire/task_params.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {
namespace {

using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::Outcome;
using lifecycle::Subject;
using std::chrono::seconds;
using wire::Mode;
using wire::TaskKind;

constexpr std::string_view kStoragePrefix = "storage.", kAbsent = "absent";
constexpr const char* kRemoved = "none";
constexpr seconds kProbeLimit{30};
constexpr seconds kMountLimit{1800};
constexpr std::chrono::milliseconds kLookAgain{2000};

class StoragePhase final : public lifecycle::Phase {
 public:
  StoragePhase(const inventory::Cluster& cluster, gateway::AgentGateway& agents, Clock& clock)
      : cluster_(cluster), agents_(agents), clock_(clock) {}

  std::string_view name() const override { return "storage"; }

  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override {
    std::vector<lifecycle::Goal> goals;
    const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
    if (!node) return goals;
    const auto& profile = cluster.profileOf(*node);
    std::vector<lifecycle::FacetRef> before{{subject, facet(kOs)}};
    for (const auto& driver : profile.drivers) before.push_back({subject, driverFacet(driver)});
    for (const auto& name : profile.mounts)
      goals.push_back({{subject, facet(std::string(kStoragePrefix) + name)},
                       storageValue(cluster.file_systems.at(name)),
                       lifecycle::Disruption::Drain,
                       seconds(60),
                       seconds(3600),
                       before,
                       fmt::format("profile {} mounts {} at {}", profile.name, name,
                                   cluster.file_systems.at(name).mount)});
    for (const auto& fact : facts.view(subject)) {
      if (!isLeft(profile, fact)) continue;
      goals.push_back({{subject, fact.facet},
                       kRemoved,
                       lifecycle::Disruption::Drain,
                       seconds(10),
                       seconds(600),
                       before,
                       fmt::format("profile {} mounts {} no more", profile.name,
                                   fact.facet.str().substr(kStoragePrefix.size()))});
    }
    return goals;
  }

  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> facts;
    const auto* node = subject.isCluster() ? nullptr : cluster_.findNode(subject.node());
    const auto state = node ? agents_.state(node->name) : std::nullopt;
    if (!state || state->mode != Mode::Disk || cluster_.profileOf(*node).mounts.empty())
      co_return facts;
    std::vector<std::string> probes;
    for (const auto& name : cluster_.profileOf(*node).mounts)
      probes.push_back(std::string(kStoragePrefix) + name);
    const wire::AgentTask task{"storage." + node->name.str() + "." + io::randomToken(9),
                               TaskKind::Probe, toJson(wire::ProbeParams{probes}), kProbeLimit};
    CO_TRY(report, co_await agents_.runTask(node->name, task));
    CO_TRY(json, parseJson(report.result, kAgentJson));
    if (!json.is_object())
      co_return fail(ErrorCode::Corrupt,
                     "the probes of " + node->name.str() + " are not a JSON object");
    for (const auto& key : probes) {
      const auto found = json.find(key);
      facts.push_back({subject,
                       facet(key),
                       found != json.end() && found->is_string() ? found->get<std::string>()
                                                                 : std::string(kAbsent),
                       clock_.now(),
                       lifecycle::agentSource(Subject(node->name)),
                       {}});
    }
    co_return facts;
  }

  Async<Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    const auto* node = cluster_.findNode(action.facet.subject.node());
    const auto& name = action.facet.facet.str();
    const auto of =
        name.starts_with(kStoragePrefix) ? name.substr(kStoragePrefix.size()) : std::string();
    const bool removed =
        node && !of.empty() && action.to == kRemoved && !mounts(cluster_.profileOf(*node), of);
    const auto storage = cluster_.file_systems.find(of);
    if (!node || (!removed && storage == cluster_.file_systems.end()))
      co_return Outcome(
          Blocked{fmt::format("the inventory has no {} for {}", name, action.facet.subject.str())});
    const auto state = agents_.state(node->name);
    if (!state || state->mode != Mode::Disk)
      co_return Outcome(Again{
          kLookAgain,
          fmt::format("the agent of the installed system of {} to report", node->name.str())});
    const auto params = [&](bool) {
      return removed ? toJson(wire::MountRemoval{of}) : toJson(storageParams(storage->second));
    };
    auto stepped =
        co_await stepTask(agents_, node->name, TaskKind::Storage, kMountLimit, context, params);
    if (!stepped && removed && stepped.error().code() == ErrorCode::InvalidInput)
      co_return Outcome(Blocked{fmt::format(
          "the agent of {0} is of an earlier version of muster, which takes no storage away: image "
          "{0} again, or end the mount of {1} there (systemctl disable --now) and delete its unit "
          "in /etc/systemd/system",
          node->name.str(), of)});
    CO_TRY(step, std::move(stepped));
    if (const auto* again = std::get_if<Again>(&step)) co_return Outcome(*again);
    if (const auto* refused = std::get_if<Refusal>(&step)) co_return Outcome(Blocked{refused->why});
    co_return Outcome(Done{});
  }

  Async<std::vector<Fact>> verify(lifecycle::Action action) override {
    auto facts = co_await observe(action.facet.subject);
    if (facts && action.to == kRemoved)
      facts->push_back({action.facet.subject,
                        action.facet.facet,
                        kRemoved,
                        clock_.now(),
                        lifecycle::agentSource(action.facet.subject),
                        {}});
    co_return facts;
  }

 private:
  static bool mounts(const inventory::Profile& profile, const std::string& name) {
    return std::find(profile.mounts.begin(), profile.mounts.end(), name) != profile.mounts.end();
  }
  /// Known of an earlier declaration, not of this one.
  static bool isLeft(const inventory::Profile& profile, const Fact& fact) {
    const auto& name = fact.facet.str();
    return name.starts_with(kStoragePrefix) && fact.value != kRemoved && fact.value != kAbsent &&
           !mounts(profile, name.substr(kStoragePrefix.size()));
  }

  const inventory::Cluster& cluster_;
  gateway::AgentGateway& agents_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeStoragePhase(const inventory::Cluster& cluster,
                                                   gateway::AgentGateway& agents, Clock& clock) {
  return std::make_unique<StoragePhase>(cluster, agents, clock);
}

}  // namespace muster::provision
