// SPDX-License-Identifier: Apache-2.0
#include "app/site/session.h"

#include "app/runs/run_erasure.h"
#include "app/site/effective_cluster.h"
#include "app/site/state_folder.h"
#include "base/log.h"
#include "lifecycle/rollout/overlay.h"
#include "lifecycle/store/runs.h"
#include "provision/storage/erase.h"

namespace muster::app {
namespace {

ProgressListener& nobody() {
  static ProgressListener listener;
  return listener;
}

}  // namespace

Result<std::unique_ptr<Session>> Session::open(const Options& options,
                                               std::unique_ptr<lifecycle::EffectiveCluster> live,
                                               Role role, ProgressListener& progress) {
  auto session = std::make_unique<Session>(progress);
  session->live = std::move(live);
  TRY(found, lab::find(options.labFolder(session->cluster())));
  session->lab = std::move(found);
  if (session->lab) TRY_OK(lab::enter(*session->lab));
  TRY_OK(prepareStateFolder(options.state));
  startLog(options.state / "muster.log", LogLevel::Info);
  TRY(controller,
      Controller::start(options, session->cluster(), session->lab, role,
                        [&progress](const lifecycle::Event& event) { progress.onEvent(event); }));
  session->controller = std::move(controller);
  if (role == Role::Active) {
    TRY(runs, lifecycle::openRuns(options.storeUrl()));
    TRY_OK(
        restErasures(*runs, session->store(), session->controller->clock().now(),
                     [&](const NodeName& node) { session->controller->erasures().forget(node); }));
  }
  TRY(rollouts, lifecycle::overlaysMark(session->store()));
  session->rollouts = std::move(rollouts);
  return session;
}

Result<std::unique_ptr<Session>> Session::openStored(
    const Options& options, std::unique_ptr<lifecycle::EffectiveCluster> live) {
  auto session = std::make_unique<Session>(nobody());
  session->live = std::move(live);
  TRY(found, lab::find(options.labFolder(session->cluster())));
  session->lab = std::move(found);
  TRY(controller, Controller::openStored(options, session->cluster(), session->lab));
  session->controller = std::move(controller);
  return session;
}

Result<LockedSession> LockedSession::open(const Options& options,
                                          std::unique_ptr<lifecycle::EffectiveCluster> live) {
  TRY_OK(prepareStateFolder(options.state));
  TRY(lock, acquireLock(options.state));
  TRY(store, openStoreForWriting(options));  // makes the store of a new state folder
  store.reset();
  TRY(session, Session::openStored(options, std::move(live)));
  session->controller->exitOnSignals();
  if (session->lab) TRY_OK(lab::enter(*session->lab));
  std::unique_ptr<Leadership> leadership;
  if (hasSeveralControllers(session->cluster()) && !session->lab) {
    TRY(holder, holderOf(options.state, hostName()));
    TRY(held, Leadership::acquire(options, session->cluster(), holder));
    leadership = std::move(held);
  }
  return LockedSession{std::move(lock), std::move(leadership), std::move(session)};
}

const lifecycle::Roster& Session::roster() {
  if (!roster_) roster_.emplace(cluster());
  return *roster_;
}

}  // namespace muster::app
