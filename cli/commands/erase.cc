// SPDX-License-Identifier: Apache-2.0
// erase: the disks of one node, for good. Without --confirm only the plan is shown.
#include "provision/storage/erase.h"

#include "app/state_lock.h"
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "cli/view/plan_view.h"
#include "inventory/parse/hostlist.h"

#include <iostream>

namespace muster::cli {
namespace {

using lifecycle::Subject;

int showReport(lifecycle::Store& store, const app::Options& options, const EraseFlags& flags) {
  const auto kept = provision::erasureReport(store, NodeName(flags.node));
  if (!kept) return report(kept.error());
  if (!*kept)
    return report(Error(ErrorCode::NotFound, flags.node + " was never erased: there is no report"));
  if (!flags.out.empty())
    if (const auto written = io::writeFileAtomic(flags.out, **kept + "\n"); !written)
      return report(written.error());
  std::cout << (options.json ? **kept + "\n" : provision::erasureText(**kept));
  return kOk;
}

/// Nobody may go on with it at this moment: whoever works with the state folder is waited for, or
/// named.
int cancel(const app::Options& options, const EraseFlags& flags) {
  if (!flags.confirm.empty() || flags.report || !flags.disks.empty())
    return report(Error(ErrorCode::InvalidInput,
                        "--cancel takes back the node's whole erasure: leave out --confirm, "
                        "--disks and --report; nothing was done"));
  const auto turn = app::takeTurn(options.state);
  if (!turn) return report(turn.error());
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto words = provision::cancelErasure(**store, NodeName(flags.node), app::actorText(),
                                              SystemClock().now());
  if (!words) return report(words.error());
  std::cout << *words << '\n';
  return kOk;
}

/// The serial that the node's firmware must tell: what the inventory says, else what its agent once
/// told.
Result<std::string> serialOf(const inventory::Node& node, const lifecycle::FactSet& facts) {
  if (!node.serial.empty()) return node.serial;
  if (const auto told = facts.value(Subject(node.name), FacetName("hw.serial"));
      told && !told->empty())
    return *told;
  return fail(ErrorCode::NotFound,
              fmt::format("the serial of {} is not known, so nobody can be sure that it is the "
                          "right machine; declare it in the inventory",
                          node.name.str()));
}

Result<provision::EraseRequest> requestOf(Session& session, const inventory::Node& node,
                                          const lifecycle::FactSet& facts,
                                          const EraseFlags& flags) {
  TRY(serial, serialOf(node, facts));
  return provision::requestToGoOnWith(
      session.controller->store(), node.name,
      {io::randomToken(6), serial, flags.disks, app::actorText(), flags.reason});
}

/// Only this one action: whatever else is open belongs to somebody's apply.
Result<lifecycle::Plan> planOf(Session& session, const NodeName& node,
                               const lifecycle::FactSet& facts) {
  lifecycle::Policy policy;
  policy.only = {Subject(node)};
  policy.wipe_allowed = {node};
  policy.intents_to_end = std::set<std::string>();
  return lifecycle::makePlan(session.cluster(), facts, policy, {&session.controller->erasures()});
}

Result<int> eraseNode(Session& session, const inventory::Node& node, const app::Options& options,
                      const EraseFlags& flags) {
  auto& controller = *session.controller;
  lifecycle::Policy look;
  look.only = {Subject(node.name)};
  TRY(facts, controller.run(controller.observe(look)));
  if (const auto why = provision::whyNotErase(session.cluster(), node.name, facts))
    return fail(ErrorCode::Denied, *why + "; nothing was erased");
  TRY(request, requestOf(session, node, facts, flags));
  controller.erasures().ask(node.name, request);
  TRY(plan, planOf(session, node.name, facts));
  if (!options.json) std::cout << planText(plan) << std::endl;
  if (flags.confirm.empty()) {
    std::cout << fmt::format(
        "Nothing was done. This cannot be undone; to do it: muster erase {}{} --reason … --confirm "
        "{}\n",
        node.name.str(), flags.disks.empty() ? "" : " --disks …", node.name.str());
    return int{kOk};
  }
  TRY_OK(provision::beginErasure(controller.store(), plan, node.name, request,
                                 controller.clock().now()));
  TRY(report, controller.run(controller.apply(plan)));
  session.view.finish();
  if (!options.json) std::cout << reportText(report);
  (void)controller.run(controller.observe(look));  // what its disks hold now
  const auto kept = provision::erasureReport(controller.store(), node.name);
  if (kept && *kept && (*kept)->find(request.id) != std::string::npos)
    (void)showReport(controller.store(), options, flags);
  TRY(complete, provision::isComplete(controller.store(), node.name, request.id));
  return complete && report.ok() && report.held == 0 ? int{kOk} : int{kFailed};
}

}  // namespace

int erase(const app::Options& options, const EraseFlags& flags) {
  if (flags.report) {
    auto store = lifecycle::openStore(options.storeUrl());
    if (!store) return report(store.error());
    return showReport(**store, options, flags);
  }
  if (flags.cancel) return cancel(options, flags);
  const auto refuse = [](std::string why) {
    return report(Error(ErrorCode::InvalidInput, std::move(why) + "; nothing was done"));
  };
  if (!flags.confirm.empty() && flags.confirm != flags.node)
    return refuse(
        fmt::format("--confirm {} is not the name of the node, {}", flags.confirm, flags.node));
  if (!flags.confirm.empty() && flags.reason.empty())
    return refuse("--reason is missing; it is kept in the report");
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  if (!(*live)->cluster().findNode(NodeName(flags.node)))
    return report(
        Error(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", flags.node)));
  auto session =
      Session::open(options, std::move(*live),
                    flags.confirm.empty() ? app::Role::Looks : app::Role::Acts, options.json);
  if (!session) return report(session.error());
  const auto code =
      eraseNode(**session, *(*session)->cluster().findNode(NodeName(flags.node)), options, flags);
  return code ? *code : report(code.error());
}

}  // namespace muster::cli
