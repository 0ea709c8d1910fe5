// SPDX-License-Identifier: Apache-2.0
#include "app/firmware/firmware_baselines.h"

#include "app/runs/run_firmware_retry.h"
#include "app/runs/run_policy.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/site_keys.h"
#include "base/io/trusted_keys.h"
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace muster::app {

namespace {

NodeUpgrade upgradeOf(const NodeName& node, const inventory::FirmwareBaseline& baseline,
                      const firmware::Versions& running, const firmware::UpgradePath& path) {
  const auto& schedule = path.schedule;
  const auto totals = firmware::totalsOf(schedule, path.measured);
  NodeUpgrade out{node,
                  baseline.name,
                  totals.flashes,
                  totals.resets,
                  totals.ac_cycles,
                  static_cast<int>(totals.time.count()),
                  {},
                  {},
                  firmware::brokenConstraints(baseline, running)};
  for (const auto& wave : schedule.waves) {
    FirmwareWave made{std::string(toString(wave.activation)),
                      static_cast<int>(firmware::waveTime(wave, path.measured).count()),
                      {}};
    for (const auto& step : wave.steps)
      made.steps.push_back({step.component->name, step.from, step.to});
    out.waves.push_back(std::move(made));
  }
  for (const auto& undone : schedule.undone)
    out.undone.push_back(
        {undone.component->name, undone.running, undone.component->version, undone.why});
  return out;
}

}  // namespace

nlohmann::json toJson(const NodeUpgrade& node) {
  nlohmann::json out = {{"node", node.node.str()},
                        {"baseline", node.baseline},
                        {"flashes", node.flashes},
                        {"resets", node.resets},
                        {"ac_cycles", node.ac_cycles},
                        {"minutes", node.minutes},
                        {"waves", nlohmann::json::array()},
                        {"undone", nlohmann::json::array()},
                        {"forbidden_now", node.forbidden_now}};
  for (const auto& wave : node.waves) {
    auto steps = nlohmann::json::array();
    for (const auto& step : wave.steps)
      steps.push_back({{"component", step.component}, {"from", step.from}, {"to", step.to}});
    out["waves"].push_back(
        {{"activation", wave.activation}, {"minutes", wave.minutes}, {"steps", std::move(steps)}});
  }
  for (const auto& undone : node.undone)
    out["undone"].push_back({{"component", undone.component},
                             {"running", undone.running},
                             {"wanted", undone.wanted},
                             {"why", undone.why}});
  return out;
}

std::vector<NodeName> nodesWithBaseline(const inventory::Cluster& cluster) {
  std::vector<NodeName> out;
  for (const auto& node : cluster.nodes)
    if (firmware::baselineOf(cluster, lifecycle::Subject(node.name))) out.push_back(node.name);
  return out;
}

std::vector<NodeUpgrade> firmwareUpgrades(const inventory::Cluster& cluster,
                                          const lifecycle::FactSet& facts,
                                          const std::vector<NodeName>& nodes) {
  std::vector<firmware::Durations> machines;
  for (const auto& node : cluster.nodes)
    machines.push_back(firmware::measuredBy(facts, lifecycle::Subject(node.name)));
  const auto typical = firmware::typicalOf(machines);
  std::vector<NodeUpgrade> out;
  for (const auto& node : nodes) {
    const lifecycle::Subject subject(node);
    const auto* baseline = firmware::baselineOf(cluster, subject);
    if (!baseline) continue;
    const auto running = firmware::runningBy(facts, subject);
    auto durations = firmware::measuredBy(facts, subject);
    durations.insert(typical.begin(), typical.end());
    auto path = firmware::upgradePathOf(*baseline, running, std::move(durations));
    firmware::leaveFailedUndone(path.schedule, running, subject, facts);
    out.push_back(upgradeOf(node, *baseline, running, path));
  }
  return out;
}

Result<std::vector<NodeUpgrade>> firmwareUpgrades(const Options& options,
                                                  const std::string& nodes) {
  TRY(live, effectiveCluster(options));
  const auto& cluster = live->cluster();
  TRY(selected, selectedNodes(cluster, nodes));
  if (!storeExists(options))
    return fail(ErrorCode::NotFound,
                fmt::format("no node has been observed yet in {}; start with: muster plan",
                            options.state.string()));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(facts, store->facts());
  auto wanted = nodesWithBaseline(cluster);
  const std::set<NodeName> named(selected.begin(), selected.end());
  if (!named.empty())
    std::erase_if(wanted, [&named](const NodeName& node) { return !named.contains(node); });
  return firmwareUpgrades(cluster, facts, wanted);
}

Result<BaselineSignature> signBaseline(const Options& options, const std::string& name) {
  TRY(cluster, loadCluster(options));
  const auto baseline = cluster.firmware.find(name);
  if (baseline == cluster.firmware.end())
    return fail(ErrorCode::NotFound,
                fmt::format("the inventory has no firmware baseline {}", name));
  TRY(key, loadKey(options.state, KeyPurpose::Firmware));
  const auto& signer = baseline->second.signer_pem;
  TRY(signature, io::sign(key, baseline->second.canonical()));
  return BaselineSignature{std::move(signature), key.id(),
                           signer.empty() || io::trustedPemOf(signer, key.id())};
}

namespace {

/// Nobody can agree to what a command lets happen by itself: an installation resets the node, and
/// takes it out where it may take jobs.
Result<void> requireNobodyAsked(const inventory::Cluster& cluster, const lifecycle::FactSet& facts,
                                const std::vector<NodeName>& nodes) {
  lifecycle::Plan plan;
  lifecycle::PlanImpact impact;
  for (const auto& [subject, facets] : failuresSeenBefore(facts, nodes, WallTime::max())) {
    lifecycle::Action action;
    action.facet = {subject, facets.front()};
    plan.actions.push_back(std::move(action));
    impact.reset.push_back(subject.node());
    const auto pool = facts.value(subject, FacetName(std::string(lifecycle::kPoolFacet)));
    if (!pool || lifecycle::mayTakeJobs(pool)) impact.taken_out.push_back(subject.node());
  }
  impact.actions = impact.subjects = plan.actions.size();
  return requireNoApprovals(cluster, plan, impact, SystemClock().now());
}

}  // namespace

Result<std::vector<FirmwareRetry>> retryFirmware(const Options& options, const std::string& nodes,
                                                 const std::string& reason) {
  if (reason.empty())
    return fail(ErrorCode::InvalidInput,
                "--reason is missing: what was found, or repaired; it is kept in the log. Nothing "
                "was done");
  TRY(live, effectiveCluster(options));
  TRY(selected, selectedNodes(live->cluster(), nodes));
  TRY(store, openStoreForWriting(options));
  TRY(facts, store->facts());
  TRY_OK(requireNobodyAsked(live->cluster(), facts, selected));
  std::vector<FirmwareRetry> out;
  for (const auto& node : selected) {
    const lifecycle::Subject subject(node);
    const auto failed = firmware::failedFacets(facts, subject);
    out.push_back({node, failed.size()});
    if (failed.empty()) continue;
    TRY_OK(store->forgetFacts(subject, failed));
    TRY_OK(addNote(
        *store, subject,
        fmt::format("{} lets failed firmware be installed again: {}", actorText(), reason)));
  }
  return out;
}

}  // namespace muster::app
