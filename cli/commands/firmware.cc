// SPDX-License-Identifier: Apache-2.0
// firmware plan, sign, retry.
#include "app/firmware/firmware_baselines.h"

#include "app/site/site_records.h"
#include "base/json_output.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/firmware.h"
#include "cli/commands/print_done.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"
#include "cli/view/firmware_view.h"

#include <iostream>

namespace muster::cli {

int firmwarePlan(const app::Options& options, const NodesArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto upgrades = (*site)->records().firmwareUpgrades(args.nodes);
  if (!upgrades) return report(upgrades.error());
  if (options.json)
    std::cout << jsonText(firmwareJson(*upgrades), 2) << "\n";
  else
    std::cout << (upgrades->empty() ? "no node has a firmware baseline\n"
                                    : firmwareText(*upgrades));
  return kOk;
}

namespace {

/// Whoever serves the site installs it: it may wait there for approvals and windows.
int retryByRun(const app::Options& options, app::SiteClient& site, const NodesReasonArgs& args) {
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site,
                      {.kind = lifecycle::RunKind::FirmwareRetry,
                       .apply = {args.nodes, false, options.command_line, ""},
                       .firmware_retry = {args.reason, {}}},
                      progress);
}

}  // namespace

int firmwareRetry(const app::Options& options, const NodesReasonArgs& args) {
  const auto site = siteForRuns(options);
  if (!site) return report(site.error());
  if (*site) return retryByRun(options, **site, args);
  const auto retried = app::retryFirmware(options, args.nodes, args.reason);
  if (!retried) return report(retried.error());
  std::string text;
  auto all = nlohmann::json::array();
  for (const auto& each : *retried) {
    all.push_back({{"node", each.node.str()}, {"components", each.components}});
    text += each.components == 0
                ? fmt::format("{}: nothing has failed\n", each.node.str())
                : fmt::format(
                      "{0}: {1} components may be installed again; `muster plan --nodes "
                      "{0}` shows how\n",
                      each.node.str(), each.components);
  }
  return printDone(options, all, text);
}

/// The signature goes to standard output, so that whoever holds the key decides where it lies.
int firmwareSign(const app::Options& options, const FirmwareSignArgs& args) {
  const auto signed_baseline = app::signBaseline(options, args.baseline);
  if (!signed_baseline) return report(signed_baseline.error());
  if (!signed_baseline->is_declared_signer)
    std::cerr << fmt::format(
        "muster: the baseline's `signer` is another key than this one ({}); write this one's "
        "public half there: muster key show firmware\n",
        signed_baseline->key_id);
  return printDone(options,
                   {{"baseline", args.baseline},
                    {"key_id", signed_baseline->key_id},
                    {"signature", signed_baseline->signature}},
                   signed_baseline->signature + "\n");
}

}  // namespace muster::cli
