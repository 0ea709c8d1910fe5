// SPDX-License-Identifier: Apache-2.0
#include "app/controller/monitor_run.h"

#include "app/controller/audit_export.h"
#include "app/controller/controller.h"
#include "app/plans/rollout_guard.h"
#include "app/runs/run_reservations.h"
#include "app/runs/run_work.h"
#include "app/site/effective_cluster.h"
#include "app/site/state_folder.h"
#include "app/validation/active_checks.h"
#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "lifecycle/rollout/overlay.h"
#include "monitor/monitor.h"
#include "monitor/notify/notifier.h"
#include "provision/netboot/netboot.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <atomic>
#include <thread>

namespace muster::app {
namespace {

constexpr std::chrono::milliseconds kLockPollInterval{500};
constexpr std::chrono::seconds kRolloutPollInterval{
    30};  ///< of other hosts; a node's change takes longer than that
constexpr std::chrono::seconds kRetryInterval{10};  ///< after a run that could not begin
constexpr std::string_view kReleased =
    "another command works with the state folder; the monitor goes on when it has ended";

/// Set at any time; taken by whoever reads the inventory next, before it is read.
std::atomic<bool> reload_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal's handler sets it");

/// What one run leaves to the next.
struct Handover {
  std::unique_ptr<lifecycle::EffectiveCluster>
      live;              ///< read and found good already; null: read it
  std::string rollouts;  ///< lifecycle::overlaysMark from before `live` was read
  provision::RunningDnsmasq
      dnsmasq;         ///< runs on, so that machines that boot meanwhile are answered
  std::string reason;  ///< why the run ended, for the operator
};

/// What the process remembers from one run to the next.
struct Kept {
  std::shared_ptr<monitor::RetryState> retry_state;
  std::shared_ptr<RunMemory> runs;
};

/// An inventory that cannot be read does not end the run: the one that was read before stays.
std::unique_ptr<lifecycle::EffectiveCluster> reloadInventory(const Options& options,
                                                             Controller& controller,
                                                             MonitorListener& listener) {
  auto next = servedCluster(options);
  if (!next) {
    listener.onError(next.error());
    listener.onNotice(
        "the inventory as it was before stays in use; correct the file and send SIGHUP again");
    return nullptr;
  }
  // Another network needs the next run's start; the nodes are announced already.
  if (const auto followed = controller.followInventory((*next)->cluster()); !followed)
    logInfo("monitor", "{}", followed.error().str());
  return std::move(*next);
}

/// What rollouts have done so far, as the store says. It is read before the inventory, so that none
/// is missed that goes on meanwhile.
Result<std::string> rolloutsNow(const Options& options) {
  if (!storeExists(options)) return std::string();
  TRY(store, lifecycle::openStore(options.storeUrl()));
  return lifecycle::overlaysMark(*store);
}

/// Ends when the run has to: a command requests the lock, the inventory was to be read again, or a
/// rollout of another host has changed something.
Task<Handover> untilRunEnds(Options options, Controller& controller, std::string rollouts,
                            std::shared_ptr<RunMemory> runs, MonitorListener& listener) {
  Handover end;
  bool is_put_off = false;  ///< SIGHUP came while a run was under way
  runs->begin_none = false;
  auto next_poll = controller.clock().steady() + kRolloutPollInterval;
  while (true) {
    if (listener.onPoll(); isLockRequested(options.state)) {
      end.reason = kReleased;
      co_return end;
    }
    const bool came = reload_requested.exchange(false);
    const bool is_requested = (came || is_put_off) && runs->under_way.empty();
    if (came && !is_requested)
      listener.onNotice(
          fmt::format("SIGHUP: the inventory is read again when run {} has ended; to have it "
                      "sooner: `muster run "
                      "pause {}`",
                      runs->under_way, runs->under_way));
    is_put_off = (came || is_put_off) && !is_requested;
    runs->begin_none = is_put_off;
    std::optional<std::string> changed;
    const bool is_poll_due = controller.clock().steady() >= next_poll && runs->under_way.empty();
    if (is_requested || is_poll_due) {
      next_poll = controller.clock().steady() + kRolloutPollInterval;
      if (auto mark = lifecycle::overlaysMark(controller.store()); mark && *mark != rollouts)
        changed = std::move(*mark);
    }
    if (is_requested || changed) {
      rollouts =
          changed.value_or(rollouts);  // one that cannot be laid over the inventory is told once
      end.live = reloadInventory(options, controller, listener);
      if (end.live) {
        end.rollouts = std::move(rollouts);
        end.dnsmasq = controller.releaseDnsmasq();
        end.reason = is_requested ? "SIGHUP: the inventory is read again"
                                  : "a rollout has changed nodes: the inventory is read again, "
                                    "with what the rollout has changed";
        co_return end;
      }
    }
    co_await controller.clock().sleep(kLockPollInterval);
  }
}

Async<Handover> monitorUntilRunEnds(Controller& controller, MonitorListener& listener,
                                    Options options, std::string rollouts, Kept kept,
                                    RunWork run_work) {
  using namespace asio::experimental::awaitable_operators;
  auto services = controller.monitorServices(
      [&listener](const lifecycle::Event& event) { listener.onEvent(event); });
  services.retry_state = kept.retry_state;
  auto told = monitor::notifyReceivers(
      {services.cluster, services.store, services.clock, controller.workers(), io::makeHttpClient});
  auto reserved = keepReservations({services.cluster, run_work.runs, controller.store(),
                                    controller.clock(), controller.reservations()});
  auto idle = keepActiveChecks(activeCheckServices(controller, services.cluster));
  monitor::Monitor nodes_monitor(std::move(services));
  auto work = nodes_monitor.run();
  RunExecutor executor(std::move(run_work), kept.runs);
  auto end = untilRunEnds(std::move(options), controller, std::move(rollouts), kept.runs, listener);
  auto runs = executor.run();
  auto watch = controller.watchStalls();
  auto bmcs = controller.watchBmcs();
  auto heads = exportAuditHeads(controller.store(), controller.keys().audit, controller.clock());
  auto first = co_await (std::move(work) || std::move(end) || std::move(watch) || std::move(bmcs) ||
                         std::move(heads) || std::move(runs) || std::move(told) ||
                         std::move(reserved) || std::move(idle));
  co_return std::get<1>(std::move(first));
}

enum class Standby { Serves, LockRequested };

/// Waits until this host serves the site, or a command requests the state folder. `waited`: another
/// host has served meanwhile.
Result<Standby> waitForLeadership(const Options& options, const inventory::Cluster& cluster,
                                  MonitorListener& listener, bool& waited) {
  TRY(store, lifecycle::openStore(options.storeUrl()));
  TRY_OK(checkCanServe(options, cluster));  // said now, not when the other host is dead
  TRY_OK(siteKeys(options, true, *store, true));
  TRY(holder, holderOf(options.state, hostName()));
  TRY(serves, standBy(
                  options, cluster, holder, [&options] { return isLockRequested(options.state); },
                  [&waited, &listener](const lifecycle::Leader& other) {
                    waited = true;
                    listener.onNotice(
                        fmt::format("stands by; {} serves, at {}", other.holder, other.address));
                  }));
  return serves ? Standby::Serves : Standby::LockRequested;
}

/// Answers what the next run gets. Errors: the run could not begin
Result<Handover> run(const Options& options, const io::FileLock& instance, Handover earlier,
                     Kept kept, MonitorListener& listener) {
  TRY(lock, acquireMonitorLock(options.state, instance));
  auto live = std::move(earlier.live);
  const auto read = [&]() -> Result<void> {
    reload_requested = false;
    TRY(rollouts, rolloutsNow(options));
    earlier.rollouts = std::move(rollouts);
    TRY(laid, servedCluster(options));  // what a rollout has changed is what nodes should be
    live = std::move(laid);
    return {};
  };
  if (!live) TRY_OK(read());
  TRY(found, lab::find(options.labFolder(live->cluster())));
  if (found) TRY_OK(lab::enter(*found));
  if (hasSeveralControllers(live->cluster()) && !found) {
    bool waited = false;
    TRY(standby, waitForLeadership(options, live->cluster(), listener, waited));
    if (standby == Standby::LockRequested) return Handover{.reason = std::string(kReleased)};
    if (waited) TRY_OK(read());  // what the other host has changed meanwhile
  }
  const auto& cluster = live->cluster();
  TRY(controller, Controller::start(
                      options, cluster, found, Role::Active,
                      [&listener, memory = kept.runs](const lifecycle::Event& event) {
                        if (memory->hear) memory->hear(event);
                        listener.onEvent(event);
                      },
                      std::move(lock), std::move(earlier.dnsmasq)));
  // Orders for runs are obeyed before the first plan's run begins.
  TRY_OK(controller->engine().signOn());
  TRY(runs, lifecycle::openRuns(options.storeUrl()));
  controller->onExit([&store = controller->store(), &clock = controller->clock(), &listener] {
    if (const auto marked = monitor::markMonitorEnded(store, clock.now()); !marked)
      logWarning("monitor", "that it ended could not be stored: {}", marked.error().str());
    listener.onExit();
  });
  listener.onNotice(fmt::format("{} nodes, polled every {} s", cluster.nodes.size(),
                                cluster.monitor->interval_seconds));
  auto work = runWork(*controller, *runs, *live, listener, options, found);
  work.may_roll_back = [&options, &controller](const lifecycle::RolloutRecord& record) {
    return mayRollBack(options, controller->store(), record);
  };
  return controller->run(monitorUntilRunEnds(*controller, listener, options,
                                             std::move(earlier.rollouts), std::move(kept),
                                             std::move(work)));
}

}  // namespace

void requestReload() { reload_requested = true; }

Error runMonitor(const Options& options, MonitorListener& listener) {
  if (const auto made = prepareStateFolder(options.state); !made) return made.error();
  const auto instance = acquireMonitorInstance(options.state);
  if (!instance) return instance.error();
  startLog(options.state / "muster.log", LogLevel::Info);
  bool begun = false;
  Handover next;
  const Kept kept{std::make_shared<monitor::RetryState>(), std::make_shared<RunMemory>()};
  kept.runs->is_reload_due = [] { return reload_requested.load(); };
  while (true) {
    auto end = run(options, *instance, std::move(next), kept, listener);
    if (!end && !begun) return end.error();  // at its first start a person is there to read it
    begun = true;
    next = end ? std::move(*end) : Handover{};
    if (end) {
      listener.onNotice(next.reason);
    } else {
      listener.onError(end.error());
      std::this_thread::sleep_for(kRetryInterval);
    }
  }
}

}  // namespace muster::app
