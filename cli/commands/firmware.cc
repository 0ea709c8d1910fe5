// SPDX-License-Identifier: Apache-2.0
// firmware plan, sign, retry: what a baseline means for each node, vouching for one, and letting
// what failed be tried again.
#include "app/state_folder.h"
#include "base/io/files.h"
#include "base/io/trusted_keys.h"
#include "base/json_output.h"
#include "cli/session.h"
#include "cli/view/firmware_view.h"
#include "firmware/files.h"
#include "lifecycle/model/facet.h"
#include "lifecycle/store/store.h"

#include <iostream>

namespace muster::cli {

int firmwarePlan(const app::Options& options, const std::string& nodes) {
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  const auto& cluster = (*live)->cluster();
  const auto selected = selectedNodes(cluster, nodes);
  if (!selected) return report(selected.error());
  std::error_code ignored;
  if (options.store.empty() && !std::filesystem::exists(options.state / "muster.db", ignored))
    return report(Error(ErrorCode::NotFound,
                        fmt::format("no node has been looked at yet in {}; look first: muster plan",
                                    options.state.string())));
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto facts = (*store)->facts();
  if (!facts) return report(facts.error());
  std::vector<firmware::Durations> machines;
  for (const auto& node : cluster.nodes)
    machines.push_back(firmware::measuredBy(*facts, lifecycle::Subject(node.name)));
  const auto typical = firmware::typicalOf(machines);
  std::vector<NodeUpgradePath> paths;
  for (const auto& node : cluster.nodes) {
    if (!selected->empty() &&
        std::find(selected->begin(), selected->end(), node.name) == selected->end())
      continue;
    const lifecycle::Subject subject(node.name);
    const auto* baseline = firmware::baselineOf(cluster, subject);
    if (!baseline) continue;
    auto running = firmware::runningBy(*facts, subject);
    auto measured = firmware::measuredBy(*facts, subject);
    measured.insert(typical.begin(), typical.end());
    auto path = firmware::upgradePathOf(*baseline, running, std::move(measured));
    paths.push_back({node.name.str(), baseline, std::move(running), std::move(path)});
  }
  if (options.json)
    std::cout << jsonText(firmwareJson(paths), 2) << "\n";
  else
    std::cout << (paths.empty() ? "no node has a firmware baseline\n" : firmwareText(paths));
  return kOk;
}

int firmwareRetry(const app::Options& options, const std::string& nodes,
                  const std::string& reason) {
  if (reason.empty())
    return report(Error(ErrorCode::InvalidInput,
                        "--reason is missing: what was found, or repaired; it is kept in the log. "
                        "Nothing was done"));
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  const auto selected = selectedNodes((*live)->cluster(), nodes);
  if (!selected) return report(selected.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto facts = (*store)->facts();
  if (!facts) return report(facts.error());
  for (const auto& node : *selected) {
    const lifecycle::Subject subject(node);
    const auto failed = firmware::failedFacets(*facts, subject);
    if (failed.empty()) {
      std::cout << fmt::format("{}: nothing has failed\n", node.str());
      continue;
    }
    if (const auto forgotten = (*store)->forgetFacts(subject, failed); !forgotten)
      return report(forgotten.error());
    lifecycle::Event event;
    event.at = SystemClock().now();
    event.subject = subject;
    event.text =
        fmt::format("{} lets failed firmware be installed again: {}", app::actorText(), reason);
    if (const auto kept = (*store)->addEvent(event); !kept) return report(kept.error());
    std::cout << fmt::format(
        "{}: {} components may be installed again; `muster plan --nodes {}` shows how\n",
        node.str(), failed.size(), node.str());
  }
  return kOk;
}

/// The signature goes to standard output, so that whoever holds the key decides where it lies.
int firmwareSign(const app::Options& options, const std::string& name) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  const auto baseline = cluster->firmware.find(name);
  if (baseline == cluster->firmware.end())
    return report(
        Error(ErrorCode::NotFound, fmt::format("the inventory has no firmware baseline {}", name)));
  const auto key = app::loadKey(options.state, app::KeyPurpose::Firmware);
  if (!key) return report(key.error());
  if (const auto& signer = baseline->second.signer_pem;
      !signer.empty() && !io::trustedPemOf(signer, key->id()))
    std::cerr << fmt::format(
        "muster: the baseline's `signer` is another key than this one ({}); write this one's "
        "public half there: muster key show firmware\n",
        key->id());
  const auto signature = io::sign(*key, baseline->second.canonical());
  if (!signature) return report(signature.error());
  std::cout << *signature << "\n";
  return kOk;
}

}  // namespace muster::cli
