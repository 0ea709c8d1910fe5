// SPDX-License-Identifier: Apache-2.0
#include "app/controller/controller.h"

#include "app/daemon_units.h"

#include "app/controller/consoles.h"
#include "app/site/effective_cluster.h"
#include "app/site/rack_state.h"
#include "app/site/state_folder.h"
#include "base/io/side_thread.h"
#include "base/io/slow_tools.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "base/log.h"
#include "bmc/console/boot_log.h"
#include "fabric/fabric.h"
#include "fabric/node_services.h"
#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/monitor.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"
#include "lab/twin_clock.h"
#include "lifecycle/store/store_loss.h"
#include "monitor/health_gate.h"
#include "monitor/health_phase.h"
#include "monitor/monitor.h"
#include "monitor/node_rules.h"
#include "pool/idle_holds.h"
#include "pool/pool.h"
#include "pool/reservations.h"
#include "provision/boot_log.h"
#include "provision/images/image_store.h"
#include "provision/netboot/netboot.h"
#include "provision/peers/peer_service.h"
#include "provision/provision.h"
#include "provision/restart.h"
#include "provision/storage/data_wipe.h"
#include "provision/storage/erase.h"
#include "provision/storage/raid_phase.h"
#include "validate/certificate_migration.h"
#include "validate/peer_baseline.h"
#include "validate/synchronized_load.h"
#include "validate/validate.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <csignal>
#include <iostream>

namespace muster::app {
namespace {

// Agents dial again within 5 s of a controller's start; one whose controller's machine died sits
// out its long poll first (35 s).
constexpr std::chrono::seconds kAgentReconnectTimeout{45};

/// Munge's user alone can read its key. The services' user has a copy
/// (packaging/systemd/own-state).
std::filesystem::path mungeKey() {
  constexpr const char* kCopy = "/etc/muster/secrets/munge.key";
  std::error_code error;
  const bool copied = ::geteuid() != 0 && std::filesystem::exists(kCopy, error);
  return copied ? kCopy : "/etc/munge/munge.key";
}

pool::PoolOptions poolOptions(const std::optional<lab::LabHandle>& lab) {
  pool::PoolOptions out;
  out.slurm_conf = lab ? lab->slurm_conf : "/etc/slurm/slurm.conf";
  out.slurm_node_conf = lab ? lab->slurm_node_conf : "/etc/slurm/slurm.conf";
  out.munge_key = lab ? lab->munge_key : mungeKey();
  out.tool_env = {{"SLURM_CONF", out.slurm_conf.string()}};
  return out;
}

/// For nodes with GPUs and without.
gateway::HealthRulesFor healthRulesFor(const inventory::Cluster& cluster) {
  const auto text_of = [&](bool expects_gpus) {
    auto text = toJson(monitor::nodeRules(*cluster.monitor, expects_gpus));
    auto digest = wire::digestOfHealthRules(text);
    return std::make_shared<const gateway::HealthRulesText>(std::move(text), std::move(digest));
  };
  return [&cluster, with = text_of(true), without = text_of(false)](const NodeName& name) {
    const auto* node = cluster.findNode(name);
    const bool expects = node && cluster.profileOf(*node).expect.gpus.value_or(0) > 0;
    return expects ? with : without;
  };
}

/// Of the hosts that do not serve now.
std::vector<std::string> standbyUrls(const inventory::Network& network) {
  std::vector<std::string> out;
  for (const auto address : network.controllers)
    if (address != network.controller)
      out.push_back(fmt::format("http://{}:{}", address.str(), gateway::kHttpPort));
  return out;
}

}  // namespace

fabric::FabricOptions fabricOptions(const Options& options,
                                    const std::optional<lab::LabHandle>& lab,
                                    const inventory::Cluster& cluster, const std::string& fabric) {
  const auto* main = inventory::mainFabric(cluster);
  const bool several = inventory::managedFabrics(cluster).size() > 1;
  const auto folderOf = [&](const std::string& name) {
    const auto run = options.state / "run";
    return !several || (main && main->name == name) ? run / "fabric" : run / "fabrics" / name;
  };
  const auto infiniband = inventory::infiniBandFabrics(cluster);
  fabric::FabricOptions out;
  out.run_folder = folderOf(fabric);
  const auto unit = opensmUnit(lab.has_value());  // runs one OpenSM: the main fabric's
  const bool is_main = !several || (main && main->name == fabric);
  if (is_main) out.opensm_unit = unit;
  for (const auto* other : infiniband)
    if (other->name != fabric) out.other_folders.push_back(folderOf(other->name));
  if (!is_main && unit) {
    out.other_folders.push_back(unit->folder);
    out.no_opensm = fmt::format(
        "{} runs one subnet manager, that of the compute fabric: let nodes, UFM or a switch run "
        "the one of fabric {}, and take controller out of its subnet_managers",
        unit->name, fabric);
  }
  if (lab) {
    out.tool_prefix = {"ibsim-run"};
    const auto own = lab->fabrics.find(fabric);
    out.tool_env = own == lab->fabrics.end() ? lab->fabric_env : own->second;
    return out;
  }
  // The only fabric is seen through whichever port is up, unless its HCA was named.
  if (const auto own = cluster.fabrics.find(fabric);
      own != cluster.fabrics.end() && !own->second.roce &&
      (infiniband.size() > 1 || own->second.controller_hca != inventory::Fabric().controller_hca))
    out.local_hca = own->second.controller_hca;
  return out;
}

namespace {

constexpr std::chrono::minutes kHistoryMaxAge{10};
constexpr std::chrono::hours kHistoryWindow{90 * 24};
constexpr std::size_t kGateLogEntries = 200;  ///< newest of each log that a gate reads of a BMC
constexpr std::size_t kGateFiles = 20;        ///< of a node; older ones make room

/// A gate's raw answers as a file, its numbers in the store.
Result<void> storeGateRecord(const std::filesystem::path& folder,
                             const validate::GateRecord& record,
                             lifecycle::Measurements& measurements) {
  const auto own = folder / record.measured.node.str();
  TRY_OK(io::makeDirs(own, kStateFolderMode));
  const nlohmann::json document{{"node", record.measured.node.str()},
                                {"gate", record.measured.origin},
                                {"at", toString(record.measured.at)},
                                {"failures", record.failures},
                                {"answers", jsonOrNone(record.results, kKeptJson)}};
  const auto name = fmt::format("{}-{}.json", record.measured.at.time_since_epoch().count(),
                                record.measured.origin);
  TRY_OK(io::writeFileAtomic(own / name, jsonText(document, 1), kStateFileMode));
  std::vector<std::filesystem::path> files;
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(own, ignored))
    files.push_back(file.path());
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kGateFiles < files.size(); ++i)
    std::filesystem::remove(files[i], ignored);
  return measurements.add({record.measured});
}

}  // namespace

std::filesystem::path binaryFolder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

provision::ImageStoreOptions imageOptions(const Options& options, const Keys& keys,
                                          const inventory::Cluster& cluster) {
  return {options.cache, binaryFolder() / "muster-agent", keys.images, cluster.ram_os};
}

std::unique_ptr<provision::ImageStore> openImages(const Options& options, const Keys& keys,
                                                  const inventory::Cluster& cluster) {
  return provision::openImageStore(imageOptions(options, keys, cluster));
}

Controller::Controller(const inventory::Cluster& cluster, const std::optional<lab::LabHandle>& lab)
    : cluster_(cluster), synchronized_load_(std::make_unique<validate::SynchronizedLoad>()) {
  if (lab)
    clock_ = std::make_unique<lab::TwinClock>(lab->folder);
  else
    clock_ = std::make_unique<SystemClock>();
}

// BMCs have few sessions; one that is left behind blocks a place for half an hour.
Controller::~Controller() {
  if (lock_ && consoles_) (void)run(consoles_->close());
  if (lock_ && bmcs_) (void)run(bmcs_->close());
}

Result<std::unique_ptr<Controller>> Controller::start(const Options& options,
                                                      const inventory::Cluster& cluster,
                                                      const std::optional<lab::LabHandle>& lab,
                                                      Role role, lifecycle::EventSink sink) {
  return start(options, cluster, lab, role, std::move(sink), std::nullopt, {});
}

Result<std::unique_ptr<Controller>> Controller::start(const Options& options,
                                                      const inventory::Cluster& cluster,
                                                      const std::optional<lab::LabHandle>& lab,
                                                      Role role, lifecycle::EventSink sink,
                                                      std::optional<StateLock> turn,
                                                      provision::RunningDnsmasq dnsmasq) {
  if (lab) TRY_OK(checkBoundTo(options.state, lab->id));
  TRY_OK(prepareStateFolder(options.state));
  TRY_OK(io::makeDirs(options.state / "run", kStateFolderMode));
  if (!turn) {
    TRY(taken, acquireLock(options.state));
    turn.emplace(std::move(taken));
  }
  std::unique_ptr<Controller> controller(new Controller(cluster, lab));
  controller->lock_ = std::move(turn);
  controller->exitOnSignals();
  TRY_OK(controller->open(options, lab, std::move(sink)));
  // Behind the store: where this name is, a store that is missing or empty was lost.
  TRY(holder, holderOf(options.state, hostName()));
  if (hasSeveralControllers(cluster) && !lab) {
    TRY(leadership, Leadership::acquire(options, cluster, holder));
    controller->leadership_ = std::move(leadership);
    TRY_OK(agreeOnImages(options, cluster, *controller->images_, *controller->store_, holder));
  }
  controller->store_watch_.emplace(controller->context_, *controller->store_, *controller->lock_);
  controller->origin_ = {std::move(holder), lifecycle::kLease, userName(), hostName(),
                         options.command_line};
  controller->engine_->actFor(controller->origin_);
  TRY_OK(controller->startServers(role, std::move(dnsmasq)));
  return controller;
}

Result<std::unique_ptr<Controller>> Controller::openStored(
    const Options& options, const inventory::Cluster& cluster,
    const std::optional<lab::LabHandle>& lab) {
  TRY_OK(requireUsed(options));
  std::unique_ptr<Controller> controller(new Controller(cluster, lab));
  // No exitOnSignals(): who only looks may wait outside the loop, and signals end it as it stands.
  TRY_OK(controller->open(options, lab, [](const lifecycle::Event&) {}));
  return controller;
}

Result<void> Controller::followInventory(const inventory::Cluster& cluster) {
  return netboot_->follow(cluster);
}

provision::RunningDnsmasq Controller::releaseDnsmasq() { return netboot_->release(); }

/// Who only looks may do so with another site's key, from a machine that is no controller.
Result<void> Controller::migrateCertificates(const Options& options) {
  auto taken =
      validate::migrateCertificates(*store_, keys_->certificates, options.state / "certificates");
  if (taken || lock_ || taken.error().code() != ErrorCode::Conflict) return taken;
  logWarning("validate", "{}", taken.error().str());
  return {};
}

Result<void> Controller::open(const Options& options, const std::optional<lab::LabHandle>& lab,
                              lifecycle::EventSink sink) {
  io::SideThread::startFor(context_);
  TRY(store, lifecycle::openStore(options.storeUrl()));
  store_ = std::move(store);
  const bool several = hasSeveralControllers(cluster_) && !lab;
  if (lock_ && several) TRY_OK(checkCanServe(options, cluster_));
  TRY(keys, siteKeys(options, several, *store_, lock_.has_value()));
  keys_.emplace(std::move(keys));
  TRY(measurements, lifecycle::openMeasurements(options.storeUrl()));
  measurements_ = std::move(measurements);
  processes_ = io::makeProcessRunner();
  if (lab) processes_ = io::slowTools(std::move(processes_), *clock_);
  auto image_options = imageOptions(options, *keys_, cluster_);
  image_options.workers = &workers_;
  images_ = provision::openImageStore(std::move(image_options));
  const auto agent_urls = inventory::agentUrls(cluster_.provisioning(), gateway::kHttpsPort);
  const auto dnsmasq = dnsmasqUnit(lab.has_value());
  evidence_ = gateway::makeNetworkEvidence(
      provision::dnsmasqLeaseFile(dnsmasq ? dnsmasq->folder : netbootFolder(options.state)));
  gateway_ = gateway::makeGatewayServer(cluster_, keys_->ca, *store_, *clock_, *evidence_,
                                        agent_urls, healthRulesFor(cluster_));
  auto bmcs = bmc::makeBmcFleet(cluster_, *store_, *clock_, workers_);
  consoles_ =
      bmc::makeConsoles(consoleFinder(options, lab, {cluster_, *store_, *clock_, workers_, *bmcs}),
                        bmc::keptConsoles(options.state), *clock_, workers_);
  bmcs_ = bmc::listenAtBoot(std::move(bmcs), *consoles_);
  TRY_OK(migrateCertificates(options));
  certificates_ = validate::makeCertificateStore(cluster_, *store_, *clock_, keys_->certificates,
                                                 options.state / "certificates");
  provision::NetbootOptions netboot{netbootFolder(options.state), gateway::kHttpPort,
                                    gateway::kHttpsPort,          keys_->ca.fingerprint(),
                                    options.runFolder("hosts"),   options.runFolder("tftp")};
  netboot.workers = &workers_;
  netboot.dnsmasq_unit = dnsmasq;
  netboot.is_on_its_way = [this](const NodeName& node) {
    return boot_log_ && provision::isOnItsWayIntoRam(*boot_log_, node, *clock_);
  };
  netboot.window = [this] { return limitHere(*clock_, gateway::kEnrollmentWindow); };
  netboot_ = provision::makeNetboot(cluster_, *images_, *gateway_, *processes_,
                                    context_.get_executor(), std::move(netboot));
  if (cluster_.provisioning().image_peers)
    peers_ = provision::makePeerService(
        cluster_, *clock_,
        {fmt::format("http://{}:{}", cluster_.provisioning().controller.str(), gateway::kHttpPort),
         io::sha256Hex("image peers\n" + keys_->images.private_pem.reveal())});
  addPhases(options, lab);
  const lifecycle::ConsoleLines console = [this](const lifecycle::Subject& subject) {
    return subject.isCluster() ? std::vector<std::string>() : consoles_->lastLines(subject.node());
  };
  stalls_ = std::make_unique<lifecycle::StallWatch>(cluster_, *store_, *clock_, sink, console);
  engine_ =
      std::make_unique<lifecycle::Engine>(cluster_, phases_, *store_, *clock_, std::move(sink));
  engine_->readConsoles(console);
  return {};
}

Result<void> Controller::startServers(Role role, provision::RunningDnsmasq dnsmasq) {
  // Plain HTTP only for what nodes verify by themselves, or load before they can.
  auto http = netboot_->routes(), https = gateway_->routes();
  const auto images = images_->routes(), drivers = provision::driverRepositoryRoutes(cluster_);
  http.insert(http.end(), images.begin(), images.end());
  const auto firmware_files = firmware::imageRoutes(cluster_, *clock_, workers_);
  http.insert(http.end(), firmware_files.begin(), firmware_files.end());
  const auto peers = peers_ ? peers_->routes() : std::vector<io::Route>();
  http.insert(http.end(), peers.begin(), peers.end());
  https.insert(https.end(), drivers.begin(), drivers.end());
  const auto media = netboot_->mediumRoutes();  // some BMCs read by HTTPS only
  https.insert(https.end(), media.begin(), media.end());
  TRY(server, gateway::start(context_.get_executor(), cluster_.provisioning(), keys_->ca,
                             std::move(http), std::move(https)));
  server_ = std::move(server);
  return role == Role::Active ? netboot_->goOn(std::move(dnsmasq)) : Result<void>();
}

void Controller::addPhases(const Options& options, const std::optional<lab::LabHandle>& lab) {
  const auto address = cluster_.provisioning().controller.str();
  const lifecycle::RestartCallback on_restart = [this](NodeName node, std::string why) {
    const auto before = gateway_->state(node);
    auto is_up = [this, node, old = before ? before->boot_id : std::string()] {
      const auto now = gateway_->state(node);
      return now && now->boot_id != old;
    };
    return consoles_->bootBegins(std::move(node), std::move(why), std::move(is_up));
  };
  boot_log_ = provision::makeBootLog(*store_);
  const provision::ProvisionDeps deps{
      cluster_,
      *bmcs_,
      *gateway_,
      *images_,
      *netboot_,
      *clock_,
      fmt::format("http://{}:{}", address, gateway::kHttpPort),
      fmt::format("https://{}:{}", address, gateway::kHttpsPort),
      keys_->ca.certificatePem(),
      keys_->images.public_pem,
      peers_.get(),
      [this](const NodeName& node) { consoles_->bootEnded(node); },
      [this](const NodeName& node, const provision::DataWipeOrder& order) {
        return provision::takeDataWipe(*store_, node, order);
      },
      [this](const NodeName& node, const std::string& intent) {
        return provision::endDataWipe(*store_, node, intent);
      },
      on_restart,
      lab ? std::vector<std::string>() : standbyUrls(cluster_.provisioning()),
      inventory::agentUrls(cluster_.provisioning(), gateway::kHttpsPort),
      boot_log_.get()};
  owned_.push_back(provision::makeProvisionPhase(deps));
  owned_.push_back(provision::makeRaidPhase(
      {cluster_, *bmcs_, *gateway_, *clock_, deps.take_data_wipe, deps.end_data_wipe}));
  auto erasures = provision::makeErasePhase(deps, *store_);
  erasures_ = erasures.get();
  owned_.push_back(std::move(erasures));
  owned_.push_back(provision::makeStoragePhase(cluster_, *gateway_, *clock_));
  owned_.push_back(firmware::makeFirmwarePhase(
      cluster_, *bmcs_, *clock_, workers_, fmt::format("http://{}:{}", address, gateway::kHttpPort),
      gateway_.get()));
  owned_.push_back(firmware::makeBiosPhase(cluster_, *bmcs_, *clock_));
  owned_.push_back(fabric::makeFabricPhases(
      cluster_, *processes_, *clock_,
      [&](const std::string& name) { return fabricOptions(options, lab, cluster_, name); }));
  owned_.push_back(fabric::makeNodeServicesPhase(
      cluster_, *gateway_, *clock_, [this, options, lab](const std::string& name) {
        return fabricOptions(options, lab, cluster_, name);
      }));
  owned_.push_back(validate::makeValidatePhase(
      cluster_, *gateway_, *certificates_, *store_, *clock_,
      [this](lifecycle::Subject subject) { return observePool(std::move(subject)); },
      [this, folder = options.state / "validation" / "gates"](const validate::GateRecord& record) {
        if (const auto kept = storeGateRecord(folder, record, *measurements_); !kept)
          logWarning("validate", "{}", kept.error().str());
      },
      [this](const std::string& sku, const NodeName& but) { return peerBaseline(sku, but); },
      synchronized_load_.get(),
      {[this](NodeName node) { return bmcs_->at(node).eventLog(kGateLogEntries); },
       [this](NodeName node) { return bmcs_->at(node).powerSupplies(); }}));
  quarantine_.emplace(*certificates_, *store_);
  gate_ = std::make_unique<monitor::HealthGate>(*quarantine_, *store_);
  auto recovery = monitor::makeRecoverySteps(*bmcs_, *clock_);
  recovery_ = recovery.get();
  owned_.push_back(std::move(recovery));
  auto bmc_health = bmc::makeHealthWatch(
      cluster_, *bmcs_, *store_, *clock_, [this](const bmc::BmcSymptom& symptom) {
        const auto verdict = monitor::assess({symptom.id, symptom.device, 1, symptom.text}, 0,
                                             cluster_.monitor->symptoms);
        return bmc::SymptomResponse{static_cast<int>(verdict.action),
                                    std::string(monitor::toString(verdict.action)), verdict.advice};
      });
  bmc_health_ = bmc_health.get();
  owned_.push_back(std::move(bmc_health));
  owned_.push_back(monitor::makeHealthPhase(cluster_, *gateway_, *store_, *clock_, on_restart));
  owned_.push_back(
      pool::makePoolPhase(cluster_, *gateway_, *gate_, *processes_, *clock_, poolOptions(lab)));
  for (const auto& phase : owned_) phases_.push_back(phase.get());
  reservations_ =
      std::make_unique<pool::Reservations>(cluster_, *processes_, *clock_, poolOptions(lab));
  idle_holds_ = std::make_unique<pool::IdleHolds>(cluster_, *processes_, poolOptions(lab));
}

/// The fleet's history is read at most every few minutes: many gates of one kind end at once.
std::map<std::string, validate::Baseline> Controller::peerBaseline(const std::string& sku,
                                                                   const NodeName& but) {
  if (history_read_ == WallTime{} || clock_->now() - history_read_ > kHistoryMaxAge) {
    auto read = measurements_->since(clock_->now() - kHistoryWindow);
    if (!read)
      logWarning("validate", "what other nodes have reached cannot be read: {}",
                 read.error().str());
    history_ = std::move(read).value_or(std::vector<lifecycle::MeasuredSet>());
    history_read_ = clock_->now();
  }
  return validate::peerBaselinesFrom(history_, sku, but);
}

Async<std::vector<lifecycle::Fact>> Controller::observePool(lifecycle::Subject subject) {
  for (auto* phase : phases_) {
    if (phase->name() != "pool") continue;
    co_return co_await phase->observe(std::move(subject));
  }
  co_return std::vector<lifecycle::Fact>{};
}

monitor::MonitorServices Controller::monitorServices(lifecycle::EventSink sink) {
  lifecycle::Phases light;
  for (const std::string_view name : {"health", "bmc-health", "validate", "pool"})
    for (auto* phase : phases_)
      if (phase->name() == name) light.push_back(phase);
  return {cluster_,
          phases_,
          std::move(light),
          *store_,
          *clock_,
          std::move(sink),
          origin_,
          recovery_,
          [this](const lifecycle::Subject& subject) {
            return subject.isCluster() ? std::vector<std::string>()
                                       : consoles_->lastLines(subject.node());
          },
          {},
          engine_.get()};
}

void Controller::exitOnSignals() {
  signals_.add(SIGINT);
  signals_.add(SIGTERM);
  signals_.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    // It has changed its user, so the kernel does not end it with us; and who was told to stop must
    // not leave a DHCP server behind. First, because who listens may end the process.
    if (netboot_) netboot_->stop();
    if (on_exit_) on_exit_();
    std::cerr << "\nmuster: stopped; nothing is lost: run the same command again to go on\n";
    std::_Exit(128 + signal);
  });
}

void Controller::stopAfter(std::chrono::minutes limit, int code) {
  end_.expires_after(limit);
  end_.async_wait([this, limit, code](boost::system::error_code error) {
    if (error) return;
    std::cerr << fmt::format(
        "\nmuster: the {} minutes are over; nothing is lost: run the same command again to go on\n",
        limit.count());
    if (netboot_) netboot_->stop();
    std::_Exit(code);
  });
}

Async<bool> Controller::ask(std::function<bool()> work) {
  const bool answer = co_await offload<bool>(workers_, std::move(work));
  co_return answer;
}

Async<lifecycle::FactSet> Controller::observe(lifecycle::Policy policy) {
  CO_TRY(known, store_->facts());
  std::set<NodeName> begun_elsewhere;
  if (leadership_ && leadership_->tookOver()) {
    CO_TRY(open, store_->openIntents());
    for (const auto& intent : open)
      if (const auto& subject = intent.action.facet.subject; !subject.isCluster())
        begun_elsewhere.insert(subject.node());
  }
  const auto until = clock_->steady() + limitHere(*clock_, kAgentReconnectTimeout);
  for (const auto& node : cluster_.nodes) {
    const auto os = known.value(lifecycle::Subject(node.name), FacetName("os"));
    if (os != "running" && os != "ram" && !begun_elsewhere.contains(node.name)) continue;
    const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - clock_->steady());
    if (left.count() <= 0) break;
    (void)co_await gateway_->waitFor(node.name, std::nullopt, "",
                                     left);  // an agent that stays away shows in the facts
  }
  co_return co_await engine_->observe(std::move(policy));
}

Async<lifecycle::ApplyReport> Controller::apply(lifecycle::Plan plan) {
  using namespace asio::experimental::awaitable_operators;
  auto work = engine_->apply(std::move(plan));
  auto watch = watchStalls();
  auto either = std::move(work) || std::move(watch);  // the watch ends with the work
  auto first = co_await std::move(either);
  co_return std::get<0>(std::move(first));
}

std::vector<lifecycle::Goal> Controller::goals(const lifecycle::Subject& subject,
                                               const lifecycle::FactSet& facts) const {
  std::vector<lifecycle::Goal> all;
  for (const auto* phase : phases_)
    for (auto& goal : phase->goals(cluster_, subject, facts)) all.push_back(std::move(goal));
  return all;
}

Result<lifecycle::Plan> Controller::plan(const lifecycle::FactSet& facts,
                                         const lifecycle::Policy& policy) const {
  return lifecycle::makePlan(cluster_, facts, policy, phases_);
}

}  // namespace muster::app
