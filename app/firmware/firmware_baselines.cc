// SPDX-License-Identifier: Apache-2.0
#include "app/firmware/firmware_baselines.h"

#include "app/runs/run_firmware_retry.h"
#include "app/runs/run_policy.h"
#include "app/site/actor.h"
#include "app/site/effective_cluster.h"
#include "app/site/site_keys.h"
#include "base/io/trusted_keys.h"
#include "firmware/files.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <algorithm>

namespace muster::app {

Result<FirmwareUpgrades> firmwareUpgrades(const Options& options, const std::string& nodes) {
  FirmwareUpgrades out;
  TRY(live, effectiveCluster(options));
  out.live = std::move(live);
  const auto& cluster = out.live->cluster();
  TRY(selected, selectedNodes(cluster, nodes));
  if (!storeExists(options))
    return fail(ErrorCode::NotFound,
                fmt::format("no node has been observed yet in {}; start with: muster plan",
                            options.state.string()));
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY(facts, store->facts());
  std::vector<firmware::Durations> machines;
  for (const auto& node : cluster.nodes)
    machines.push_back(firmware::measuredBy(facts, lifecycle::Subject(node.name)));
  const auto typical = firmware::typicalOf(machines);
  for (const auto& node : cluster.nodes) {
    if (!selected.empty() &&
        std::find(selected.begin(), selected.end(), node.name) == selected.end())
      continue;
    const lifecycle::Subject subject(node.name);
    const auto* baseline = firmware::baselineOf(cluster, subject);
    if (!baseline) continue;
    auto running = firmware::runningBy(facts, subject);
    auto durations = firmware::measuredBy(facts, subject);
    durations.insert(typical.begin(), typical.end());
    auto upgrade_path = firmware::upgradePathOf(*baseline, running, std::move(durations));
    firmware::leaveFailedUndone(upgrade_path.schedule, running, subject, facts);
    out.nodes.push_back({node.name, baseline, std::move(running), std::move(upgrade_path)});
  }
  return out;
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
