// SPDX-License-Identifier: Apache-2.0
// keep: the controller that stays. It works in shifts: a shift ends when another command wants the
// state folder, and the next one begins when that command has ended, with the inventory as it then
// is.
#include "app/audit_export.h"
#include "app/controller.h"
#include "app/state_folder.h"
#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "cli/view/progress.h"
#include "lifecycle/rollout/overlay.h"
#include "monitor/breakers.h"
#include "monitor/monitor.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <atomic>
#include <csignal>
#include <iostream>
#include <thread>

namespace muster::cli {
namespace {

constexpr std::chrono::milliseconds kLookForOthers{500};
constexpr std::chrono::seconds kLookForRollouts{
    30};  ///< of other hosts; a node's change takes longer than that
constexpr std::chrono::seconds kRestAfterTrouble{
    10};  ///< a shift that could not begin is tried again

/// By SIGHUP, at any time; taken by whoever reads the inventory next, before it is read.
std::atomic<bool> asked_to_reload{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal's handler sets it");

/// What one shift leaves to the next.
struct Handover {
  std::unique_ptr<lifecycle::EffectiveCluster>
      live;              ///< read and found good already; null: read it
  std::string rollouts;  ///< lifecycle::overlaysMark from before `live` was read
  provision::RunningDnsmasq
      dnsmasq;      ///< runs on, so that machines that boot meanwhile are answered
  std::string why;  ///< for the operator
};

/// An inventory that cannot be read does not end the shift: what was declared before is kept.
std::unique_ptr<lifecycle::EffectiveCluster> readAgain(const app::Options& options,
                                                       app::Controller& controller) {
  auto next = liveCluster(options);
  if (!next) {
    report(next.error());
    std::cout
        << "muster keep: goes on with the inventory as it was; correct it and send SIGHUP again"
        << std::endl;
    return nullptr;
  }
  // Another network needs the next shift's start; nodes are told of already.
  if (const auto followed = controller.bootNodesOf((*next)->cluster()); !followed)
    logInfo("keep", "{}", followed.error().str());
  return std::move(*next);
}

/// What rollouts have done so far, as the store says. It is asked before the inventory is read, so
/// that none is missed that goes on meanwhile.
Result<std::string> rolloutsNow(const app::Options& options) {
  if (std::error_code ignored;
      options.store.empty() && !std::filesystem::exists(options.state / "muster.db", ignored))
    return std::string();
  TRY(store, lifecycle::openStore(options.storeUrl()));
  return lifecycle::overlaysMark(*store);
}

/// Ends when the shift has to: somebody else's turn, SIGHUP, or a rollout of another host that has
/// gone on.
Task<Handover> endOfShift(app::Options options, app::Controller& controller, std::string rollouts) {
  Handover end;
  auto look_at = controller.clock().steady() + kLookForRollouts;
  while (true) {
    if (app::isAskedFor(options.state)) {
      end.why = "another command works; keep goes on when it has ended";
      co_return end;
    }
    const bool is_told = asked_to_reload.exchange(false);
    std::optional<std::string> moved;
    if (is_told || controller.clock().steady() >= look_at) {
      look_at = controller.clock().steady() + kLookForRollouts;
      if (auto mark = lifecycle::overlaysMark(controller.store()); mark && *mark != rollouts)
        moved = std::move(*mark);
    }
    if (is_told || moved) {
      rollouts =
          moved.value_or(rollouts);  // one that cannot be laid over the inventory is told once
      end.live = readAgain(options, controller);
      if (end.live) {
        end.rollouts = std::move(rollouts);
        end.dnsmasq = controller.releaseDnsmasq();
        end.why =
            is_told
                ? "SIGHUP: the inventory is read again"
                : "a rollout has gone on: the inventory is read again, with what it has changed";
        co_return end;
      }
    }
    co_await controller.clock().sleep(kLookForOthers);
  }
}

/// For ever: the signed head of the log leaves this machine at an interval, so that nobody can cut
/// the log's end off unseen.
Task<void> exportAuditHeads(app::Controller& controller) {
  while (true) {
    app::exportAuditHead(controller.store(), controller.keys().audit, controller.clock().now());
    co_await controller.clock().sleep(app::kAuditExportInterval);
  }
}

Async<Handover> keepUntilAsked(app::Controller& controller, lifecycle::EventSink sink,
                               app::Options options, std::string rollouts,
                               std::shared_ptr<monitor::RetryState> memory) {
  using namespace asio::experimental::awaitable_operators;
  auto services = controller.monitorServices(std::move(sink));
  services.memory = std::move(memory);
  monitor::Monitor keeper(std::move(services));
  auto work = keeper.run();
  auto end = endOfShift(std::move(options), controller, std::move(rollouts));
  auto watch = controller.watchStalls();
  auto bmcs = controller.watchBmcs();
  auto heads = exportAuditHeads(controller);
  auto first = co_await (std::move(work) || std::move(end) || std::move(watch) || std::move(bmcs) ||
                         std::move(heads));
  co_return std::get<1>(std::move(first));
}

/// Whether this host is the one that serves; false: somebody wants the state folder.
Result<bool> serveInTurn(const app::Options& options, const inventory::Cluster& cluster,
                         bool& waited) {
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY_OK(app::checkCanServe(options, cluster));  // said now, not when the other host is dead
  TRY_OK(app::siteKeys(options, true, *store, true));
  TRY(holder, app::holderOf(options.state, app::hostName()));
  return app::standBy(
      options, cluster, holder, [&options] { return app::isAskedFor(options.state); },
      [&waited](const lifecycle::Leader& other) {
        waited = true;
        std::cout << fmt::format("muster keep: stands by; {} serves, at {}", other.holder,
                                 other.address)
                  << std::endl;
      });
}

/// Answers what the next shift gets. Errors: the shift could not begin
Result<Handover> shift(const app::Options& options, Handover earlier,
                       std::shared_ptr<monitor::RetryState> memory) {
  TRY(turn, app::takeKeepersTurn(options.state));
  auto live = std::move(earlier.live);
  const auto read = [&]() -> Result<void> {
    asked_to_reload = false;
    TRY(rollouts, rolloutsNow(options));
    earlier.rollouts = std::move(rollouts);
    TRY(laid, liveCluster(options));  // what a rollout has brought a node to is what it should be
    live = std::move(laid);
    return {};
  };
  if (!live) TRY_OK(read());
  TRY(found, lab::find(options.labFolder(live->cluster())));
  if (found) TRY_OK(lab::enter(*found));
  if (app::hasSeveralControllers(live->cluster()) && !found) {
    bool waited = false;
    TRY(serves, serveInTurn(options, live->cluster(), waited));
    if (!serves) return Handover{.why = "another command works; keep goes on when it has ended"};
    if (waited) TRY_OK(read());  // what the other host has brought nodes to meanwhile
  }
  const auto& cluster = live->cluster();
  ProgressView view(std::cout, ProgressView::styleFor(options.json));
  auto sink = [&view](const lifecycle::Event& event) { view.show(event); };
  TRY(controller, app::Controller::start(options, cluster, found, app::Role::Acts, sink,
                                         std::move(turn), std::move(earlier.dnsmasq)));
  std::cout << fmt::format("muster keep: {} nodes, a look every {} s\n", cluster.nodes.size(),
                           cluster.keep.interval_seconds)
            << std::flush;
  auto end = controller->run(
      keepUntilAsked(*controller, sink, options, std::move(earlier.rollouts), std::move(memory)));
  view.finish();
  return end;
}

}  // namespace

int keep(const app::Options& options) {
  if (const auto made = app::prepareStateFolder(options.state); !made) return report(made.error());
  const auto place = app::takeKeepersPlace(options.state);
  if (!place) return report(place.error());
  std::signal(SIGHUP, [](int) { asked_to_reload = true; });
  startLog(options.state / "muster.log", LogLevel::Info);
  bool begun = false;
  Handover next;
  const auto memory = std::make_shared<monitor::RetryState>();
  while (true) {
    auto end = shift(options, std::move(next), memory);
    if (!end && !begun)
      return report(end.error());  // at its first start a person is there to read it
    begun = true;
    next = end ? std::move(*end) : Handover{};
    if (end) std::cout << "muster keep: " << next.why << std::endl;
    if (!end) {
      report(end.error());
      std::this_thread::sleep_for(kRestAfterTrouble);
    }
  }
}

int keepAcknowledge(const app::Options& options, const std::string& reason) {
  if (reason.empty())
    return report(Error(ErrorCode::InvalidInput,
                        "say what you have found: muster keep --acknowledge --reason TEXT"));
  auto store = lifecycle::openStore(options.storeUrl());
  if (!store) return report(store.error());
  const auto said =
      monitor::Breakers(**store).acknowledge(app::actorText(), reason, SystemClock().now());
  if (!said) return report(said.error());
  if (said->empty()) std::cout << "no circuit breaker is open\n";
  for (const auto& [pool, state] : *said) {
    std::vector<std::string> names;
    for (const auto& node : state.nodes) names.push_back(node.str());
    std::cout << fmt::format(
        "pool {}: of these, keep drains those that are still bad at its next look: {}\n", pool,
        fmt::join(names, ", "));
  }
  return kOk;
}

}  // namespace muster::cli
