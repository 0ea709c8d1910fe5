// SPDX-License-Identifier: Apache-2.0
// erase: the disks of one node, for good. Without --confirm only the plan is shown. Where somebody
// serves the site it is a run.
#include "app/nodes/erase.h"
#include "app/site/output_file.h"

#include "app/site/site_records.h"
#include "base/io/files.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/lifecycle.h"
#include "cli/commands/print_done.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"
#include "provision/storage/erase.h"

#include <iostream>

namespace muster::cli {
namespace {

int refuse(std::string why) {
  return report(Error(ErrorCode::InvalidInput, std::move(why) + "; nothing was done"));
}

int printReport(const app::Options& options, const EraseArgs& args, const std::string& json) {
  if (!args.out.empty())
    if (const auto written = app::writeOutputFile(options, args.out, json + "\n"); !written)
      return report(written.error());
  std::cout << (options.json ? json + "\n" : provision::erasureText(json));
  return kOk;
}

int showReport(const app::Options& options, const EraseArgs& args) {
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto kept = (*site)->records().erasureReport(NodeName(args.node));
  return kept ? printReport(options, args, *kept) : report(kept.error());
}

int cancel(const app::Options& options, const EraseArgs& args) {
  if (!args.confirm.empty() || args.report || !args.disks.empty())
    return refuse(
        "--cancel withdraws the node's whole erasure: leave out --confirm, --disks and --report");
  const auto withdrawn = app::cancelErasure(options, NodeName(args.node));
  if (!withdrawn) return report(withdrawn.error());
  return printDone(options, {{"node", args.node}, {"text", *withdrawn}}, *withdrawn + "\n");
}

/// Whoever serves the site does it: it may wait there for the approvals that the inventory asks
/// for.
int eraseByRun(const app::Options& options, app::SiteClient& site, const EraseArgs& args) {
  if (args.reason.empty()) return refuse("--reason is missing; it is kept in the report");
  if (!args.out.empty())
    return refuse(
        "--out writes what is known at once: leave it out, and write the report "
        "afterwards with `muster erase NODE --report --out FILE`");
  ApplyProgress progress(options.json, true, PlanDetail::Grouped);
  return followNewRun(options, site,
                      {.kind = lifecycle::RunKind::Erase,
                       .apply = {args.node, false, options.command_line, ""},
                       .erase = {args.disks, args.reason, ""}},
                      progress);
}

}  // namespace

int erase(const app::Options& options, const EraseArgs& args) {
  if (options.server_given && args.confirm.empty() && !args.report)
    return refuse(
        args.cancel
            ? "--cancel withdraws what this host's state folder holds, and the server named was "
              "not asked: cancel its run with `muster --server … run cancel ID` (`run list`)"
            : "without --confirm the disks are looked at beside the state folder: leave out "
              "--server there, or add --confirm and --reason for a run of the server");
  if (args.report) return showReport(options, args);
  if (args.cancel) return cancel(options, args);
  if (!args.confirm.empty() && args.confirm != args.node)
    return refuse(
        fmt::format("--confirm {} is not the name of the node, {}", args.confirm, args.node));
  const bool confirmed = !args.confirm.empty();
  if (confirmed) {
    const auto site = siteForRuns(options);
    if (!site) return report(site.error());
    if (*site) return eraseByRun(options, **site, args);
  }
  ConsoleProgress progress(options.json, options.json ? ShowEvents::No : ShowEvents::Yes);
  const auto erased =
      app::eraseNode(options, {NodeName(args.node), args.disks, args.reason, confirmed}, progress);
  progress.finish();
  if (!erased) return report(erased.error());
  if (!confirmed) {
    return printDone(
        options, {{"node", args.node}, {"disks", args.disks}, {"done", false}},
        fmt::format("Nothing was done. This cannot be undone; to do it: muster erase {}{} --reason "
                    "… --confirm {}\n",
                    args.node, args.disks.empty() ? "" : " --disks …", args.node));
  }
  if (erased->report) (void)printReport(options, args, *erased->report);
  return erased->complete ? kOk : kFailed;
}

}  // namespace muster::cli
