// SPDX-License-Identifier: Apache-2.0
// Controller: everything that a run of plan or apply needs, wired together. The only place that
// knows all folders.
#pragma once

#include "app/site/actor.h"
#include "app/site/leadership.h"
#include "app/site/options.h"
#include "app/site/state_lock.h"
#include "app/site/store_watch.h"
#include "base/async/start.h"
#include "base/io/files.h"
#include "bmc/bmc.h"
#include "bmc/console/console_recorder.h"
#include "bmc/health_watch.h"
#include "gateway/gateway_server.h"
#include "gateway/http_listeners.h"
#include "lab/lab.h"
#include "lifecycle/executor/engine.h"
#include "lifecycle/executor/stall_watch.h"
#include "lifecycle/model/quarantine.h"
#include "lifecycle/store/measurements.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>
#include <optional>

// Phases only by name: a change of one must not rebuild every use case.
namespace muster::fabric {
struct FabricOptions;
}
namespace muster::monitor {
class HealthGate;
class RecoverySteps;
struct MonitorServices;
}  // namespace muster::monitor
namespace muster::pool {
class IdleHolds;
class Reservations;
}  // namespace muster::pool
namespace muster::provision {
class BootLog;
class Erasures;
class ImageStore;
class Netboot;
class PeerService;
struct ImageStoreOptions;
struct RunningDnsmasq;
}  // namespace muster::provision
namespace muster::validate {
class CertificateStore;
class SynchronizedLoad;
struct Baseline;
}  // namespace muster::validate

namespace muster::app {

/// A fabric's tools as they are here: plain, or on the twin's simulated fabric. Its files are in
/// run/fabric where it is the main one (inventory::mainFabric), else in run/fabrics/NAME.
fabric::FabricOptions fabricOptions(const Options& options,
                                    const std::optional<lab::LabHandle>& lab,
                                    const inventory::Cluster& cluster, const std::string& fabric);

/// Where muster-agent and other programs of ours lie: beside this binary, links resolved
/// (/usr/bin/muster leads to /usr/lib/muster/muster).
std::filesystem::path binaryFolder();

provision::ImageStoreOptions imageOptions(const Options& options, const Keys& keys,
                                          const inventory::Cluster& cluster);
std::unique_ptr<provision::ImageStore> openImages(const Options& options, const Keys& keys,
                                                  const inventory::Cluster& cluster);

/// What a controller is started for. To look at nodes it must answer their agents; only one that
/// acts answers machines that boot.
enum class Role { ReadOnly, Active };

class Controller {
 public:
  /// Takes the state folder's lock, unless the caller has it, opens the store, starts both servers,
  /// and netboot for Role::Active, with a dnsmasq that another controller of this process has
  /// released. In a lab the process must have entered its namespace before (lab::enter).
  static Result<std::unique_ptr<Controller>> start(const Options& options,
                                                   const inventory::Cluster& cluster,
                                                   const std::optional<lab::LabHandle>& lab,
                                                   Role role, lifecycle::EventSink sink);
  static Result<std::unique_ptr<Controller>> start(const Options& options,
                                                   const inventory::Cluster& cluster,
                                                   const std::optional<lab::LabHandle>& lab,
                                                   Role role, lifecycle::EventSink sink,
                                                   std::optional<StateLock> turn,
                                                   provision::RunningDnsmasq dnsmasq);
  /// Only looks: no lock, no servers, nothing observed. For status, why and plans from stored
  /// facts.
  static Result<std::unique_ptr<Controller>> openStored(const Options& options,
                                                        const inventory::Cluster& cluster,
                                                        const std::optional<lab::LabHandle>& lab);
  ~Controller();

  /// Runs a coroutine to its end on the control thread. SIGINT and SIGTERM end the process at once:
  /// stopping is the same as crashing, and the journal knows what was under way.
  template <class T>
  Result<T> run(Async<T> work);
  /// From now on SIGINT and SIGTERM end the process with words on how to go on. Only for who stays
  /// in `run`: outside of it a signal would be taken and never heard.
  void exitOnSignals();
  /// Done first when a signal ends the process.
  void onExit(std::function<void()> work) { on_exit_ = std::move(work); }
  /// From now on: when the time is over the process ends as on a signal, with words and exit status
  /// `code`.
  void stopAfter(std::chrono::minutes limit, int code);

  /// Waits a moment for the agents of nodes that are known to run, then reads every facet.
  Async<lifecycle::FactSet> observe(lifecycle::Policy policy);
  Result<lifecycle::Plan> plan(const lifecycle::FactSet& facts,
                               const lifecycle::Policy& policy) const;
  /// Carries the plan out; meanwhile it is said when an action takes longer than its kind usually
  /// does.
  Async<lifecycle::ApplyReport> apply(lifecycle::Plan plan);

  /// Says for ever when an action takes longer than its kind usually does.
  Task<void> watchStalls() { return stalls_->run(); }
  /// Reads for ever what BMCs tell of their machines.
  Task<void> watchBmcs() { return bmc_health_->run(); }
  monitor::MonitorServices monitorServices(lifecycle::EventSink sink);

  /// Machines that boot are told of the nodes of another inventory at once; it must outlive this
  /// object. Everything else needs a new controller.
  Result<void> followInventory(const inventory::Cluster& cluster);
  provision::RunningDnsmasq releaseDnsmasq();

  /// Runs what blocks (a question to a person) beside the control thread, which goes on answering
  /// agents, keeping leases and hearing signals meanwhile. `work` owns what it uses.
  Async<bool> ask(std::function<bool()> work);
  /// A node's place in its pool at this moment.
  Async<std::vector<lifecycle::Fact>> observePool(lifecycle::Subject subject);
  gateway::AgentGateway& agents() { return *gateway_; }
  lifecycle::Measurements& measurements() { return *measurements_; }
  lifecycle::Store& store() { return *store_; }
  /// Asked before apply: the nodes of a rack start their gates at one moment.
  validate::SynchronizedLoad& synchronizedLoad() { return *synchronized_load_; }
  lifecycle::Engine& engine() { return *engine_; }
  bmc::BmcFleet& bmcs() { return *bmcs_; }
  const lifecycle::Phases& phases() const { return phases_; }
  provision::Erasures& erasures() { return *erasures_; }
  Clock& clock() { return *clock_; }
  Workers& workers() { return workers_; }
  const signer::Authority& ca() const { return keys_->ca; }
  const Keys& keys() const { return *keys_; }
  /// Of the store's session: one to a state folder.
  const std::string& holder() const { return origin_.holder; }
  io::ProcessRunner& processes() { return *processes_; }
  pool::Reservations& reservations() { return *reservations_; }
  pool::IdleHolds& idleHolds() { return *idle_holds_; }
  validate::CertificateStore& certificates() { return *certificates_; }
  /// All goals of one subject, from every phase.
  std::vector<lifecycle::Goal> goals(const lifecycle::Subject& subject,
                                     const lifecycle::FactSet& facts) const;

 private:
  Controller(const inventory::Cluster& cluster, const std::optional<lab::LabHandle>& lab);
  Result<void> open(const Options& options, const std::optional<lab::LabHandle>& lab,
                    lifecycle::EventSink sink);
  Result<void> migrateCertificates(const Options& options);
  Result<void> startServers(Role role, provision::RunningDnsmasq dnsmasq);
  void addPhases(const Options& options, const std::optional<lab::LabHandle>& lab);
  std::map<std::string, validate::Baseline> peerBaseline(const std::string& sku,
                                                         const NodeName& but);

  const inventory::Cluster& cluster_;
  std::optional<StateLock> lock_;
  std::unique_ptr<Leadership> leadership_;  ///< of several hosts, this one serves
  asio::io_context context_;
  asio::signal_set signals_{context_};  ///< see exitOnSignals()
  asio::steady_timer end_{context_};
  std::function<void()> on_exit_;
  std::unique_ptr<Clock> clock_;  ///< in a lab its limits follow the machine
  Workers workers_{4};
  std::unique_ptr<io::ProcessRunner> processes_;
  std::unique_ptr<lifecycle::Store> store_;
  std::optional<StoreWatch> store_watch_;  ///< of a process that acts
  std::unique_ptr<lifecycle::Measurements> measurements_;
  std::unique_ptr<validate::SynchronizedLoad> synchronized_load_;
  std::vector<lifecycle::MeasuredSet> history_;  ///< of peerBaseline
  WallTime history_read_{};
  std::optional<Keys> keys_;
  std::unique_ptr<provision::ImageStore> images_;
  std::unique_ptr<gateway::NetworkEvidence> evidence_;
  std::unique_ptr<gateway::GatewayServer> gateway_;
  std::unique_ptr<provision::Netboot> netboot_;
  std::unique_ptr<provision::BootLog> boot_log_;
  std::unique_ptr<provision::PeerService> peers_;  ///< only where the inventory wants it
  std::unique_ptr<bmc::Consoles> consoles_;
  std::unique_ptr<bmc::BmcFleet> bmcs_;
  std::unique_ptr<validate::CertificateStore> certificates_;
  std::optional<lifecycle::QuarantineGate>
      quarantine_;  ///< before the certificates, for whoever lets nodes join
  std::unique_ptr<monitor::HealthGate> gate_;  ///< before both
  lifecycle::Origin origin_;
  std::vector<std::unique_ptr<lifecycle::Phase>> owned_;
  monitor::RecoverySteps* recovery_ = nullptr;  ///< one of them
  bmc::HealthWatch* bmc_health_ = nullptr;      ///< one of them
  std::unique_ptr<pool::Reservations> reservations_;
  std::unique_ptr<pool::IdleHolds> idle_holds_;
  provision::Erasures* erasures_ = nullptr;  ///< one of them
  lifecycle::Phases phases_;
  std::unique_ptr<lifecycle::Engine> engine_;
  std::unique_ptr<lifecycle::StallWatch> stalls_;
  std::unique_ptr<gateway::Server> server_;
};

template <class T>
Result<T> Controller::run(Async<T> work) {
  std::optional<Result<T>> answer;
  async::start(context_, async::answerInto(answer, std::move(work)),
               [this](std::exception_ptr broken) {
                 if (broken) std::rethrow_exception(broken);
                 context_.stop();
               });
  context_.restart();
  context_.run();
  return std::move(*answer);
}

}  // namespace muster::app
