// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"
#include "app/state_folder.h"

#include "base/log.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/rollout/overlay.h"

#include <iostream>

namespace muster::cli {

Result<std::unique_ptr<lifecycle::EffectiveCluster>> liveCluster(const app::Options& options) {
  TRY(declared, app::loadCluster(options));
  auto live = std::make_unique<lifecycle::EffectiveCluster>(std::move(declared));
  if (std::error_code ignored;
      options.store.empty() && !std::filesystem::exists(options.state / "muster.db", ignored))
    return live;
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY_OK(lifecycle::applyOverlays(*live, *store));
  return live;
}

Session::Session(ProgressView::Style style) : view(std::cout, style) {}

Result<std::unique_ptr<Session>> Session::open(const app::Options& options,
                                               std::unique_ptr<lifecycle::EffectiveCluster> live,
                                               app::Role role, bool quiet) {
  auto session = std::make_unique<Session>(ProgressView::styleFor(options.json));
  session->live = std::move(live);
  TRY(found, lab::find(options.labFolder(session->cluster())));
  session->lab = std::move(found);
  if (session->lab) TRY_OK(lab::enter(*session->lab));
  TRY_OK(app::prepareStateFolder(options.state));
  startLog(options.state / "muster.log", LogLevel::Info);
  TRY(controller, app::Controller::start(options, session->cluster(), session->lab, role,
                                         [view = &session->view, quiet](const auto& event) {
                                           if (!quiet) view->show(event);
                                         }));
  session->controller = std::move(controller);
  TRY(rollouts, lifecycle::overlaysMark(session->controller->store()));
  session->rollouts = std::move(rollouts);
  return session;
}

Result<std::unique_ptr<Session>> Session::openStored(
    const app::Options& options, std::unique_ptr<lifecycle::EffectiveCluster> live) {
  auto session = std::make_unique<Session>(ProgressView::Style::Lines);
  session->live = std::move(live);
  TRY(found, lab::find(options.labFolder(session->cluster())));
  session->lab = std::move(found);
  TRY(controller, app::Controller::look(options, session->cluster(), session->lab));
  session->controller = std::move(controller);
  return session;
}

Result<std::vector<NodeName>> selectedNodes(const inventory::Cluster& cluster,
                                            const std::string& hostlist) {
  std::vector<NodeName> out;
  if (hostlist.empty()) return out;
  TRY(names, inventory::expandHostlist(hostlist));
  for (auto& name : names) {
    NodeName node(std::move(name));
    if (!cluster.findNode(node))
      return fail(ErrorCode::NotFound, fmt::format("node {} is not in the inventory", node.str()));
    out.push_back(std::move(node));
  }
  return out;
}

}  // namespace muster::cli
