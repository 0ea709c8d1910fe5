// SPDX-License-Identifier: Apache-2.0
// plan and apply.
#include "app/plans/apply.h"
#include "app/plans/plan.h"
#include "app/site/output_file.h"
#include "base/io/files.h"
#include "base/io/regular_file.h"
#include "cli/commands/asked_site.h"
#include "cli/commands/lifecycle.h"
#include "cli/commands/run.h"
#include "cli/view/console_progress.h"
#include "cli/view/plan_view.h"
#include "cli/view/summary.h"
#include "gateway/enrollment_proof.h"
#include "inventory/model/node.h"

#include <iostream>

namespace muster::cli {

int plan(const app::Options& options, const PlanArgs& args) {
  ConsoleProgress progress(options.json, options.json ? ShowEvents::No : ShowEvents::Yes);
  const auto detail = args.expand ? PlanDetail::Nodes : PlanDetail::Grouped;
  const auto site = askedSite(options);
  if (!site) return report(site.error());
  const auto made = (*site)->plan({args.nodes, !args.no_refresh}, progress);
  if (!made) return report(made.error());
  const auto& plan = made->plan;
  if (options.json)
    std::cout << plan.toJson() << '\n';
  else
    std::cout << impactText(made->impact) << planText(plan, detail)
              << (made->live ? bmcTrustText(made->cluster()) : std::string())
              << slownessText(made->slowness);
  if (!options.json && !plan.empty() && made->live)
    std::cout << gateway::describeProofs(made->cluster());
  if (!args.out.empty())
    if (const auto written = app::writeOutputFile(options, args.out, plan.toJson()); !written)
      return report(written.error());
  return args.detailed_exit_code && !plan.empty() ? kChanges : kOk;
}

namespace {

constexpr std::size_t kMaxPlanBytes = 256u << 20;

int codeOf(app::Outcome outcome) {
  switch (outcome) {
    case app::Outcome::Done:
      return kOk;
    case app::Outcome::Failed:
      return kFailed;
    case app::Outcome::Declined:
    case app::Outcome::WorkLeft:
      break;
  }
  return kWorkLeft;
}

Result<app::ApplyRequest> requestOf(const ApplyArgs& args) {
  app::ApplyRequest out{args.nodes, std::nullopt};
  if (args.plan.empty()) return out;
  if (!args.nodes.empty()) return fail(app::planExcludesNodes());
  TRY(text, io::readRegularFile(args.plan, kMaxPlanBytes));
  auto saved = lifecycle::Plan::fromJson(text);
  if (!saved) return fail(std::move(saved.error().within(args.plan.string())));
  out.saved = std::move(*saved);
  return out;
}

}  // namespace

int apply(const app::Options& options, const ApplyArgs& args) {
  if (!args.plan.empty() && options.server_given)
    return report(Error(ErrorCode::InvalidInput,
                        "a saved plan is carried out by the process that is asked: leave out "
                        "--server, and run it on the host of the site; nothing was done"));
  if (args.plan.empty()) {
    const auto site = siteForRuns(options);
    if (!site) return report(site.error());
    if (*site) return applyByRun(options, **site, args);
  }
  auto request = requestOf(args);
  if (!request) return report(request.error());
  ApplyProgress progress(options.json, args.yes,
                         args.expand ? PlanDetail::Nodes : PlanDetail::Grouped);
  const auto done = app::applyPlan(options, std::move(*request), progress);
  progress.finish();
  if (!done) return report(done.error());
  if (done->outcome == app::Outcome::Declined) std::cerr << "muster: nothing was done\n";
  if (const auto table = stageTable(done->stages); !options.json && !table.empty())
    std::cout << "\n" << table;
  return codeOf(done->outcome);
}

}  // namespace muster::cli
