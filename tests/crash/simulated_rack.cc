// SPDX-License-Identifier: Apache-2.0
#include "tests/crash/simulated_rack.h"

#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "lifecycle/model/quarantine.h"
#include "lifecycle/rollout/overlay.h"
#include "monitor/health_gate.h"
#include "pool/pool.h"
#include "provision/provision.h"
#include "provision/storage/erase.h"
#include "tests/fakes/fake_image_store.h"
#include "tests/lifecycle/virtual_time.h"
#include "validate/validate.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>

#include <fstream>

namespace muster::test {
namespace {

using lifecycle::ApplyReport;
using nlohmann::json;
using wire::Mode;
using wire::TaskKind;
using namespace std::chrono_literals;

constexpr double kGflops = 50;
constexpr auto kBootTakes = 40s;
constexpr auto kImageTakes = 30s;
constexpr auto kDriverTakes = 10s;
constexpr auto kEraseTakes = 60s;
constexpr auto kTick = 1s;
constexpr auto kLongestLife = 24h;  ///< of virtual time; the pump would else hide a dead-lock
constexpr int kMaxRoundsOfALife = 6;
constexpr const char* kImageDigest = "d1d1";

/// Not synced to the disk: hundreds of racks are made in one test.
void write(const std::filesystem::path& file, std::string_view text) {
  std::ofstream(file, std::ios::binary) << text;
  std::filesystem::permissions(
      file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

std::string indexed(const char* pattern, std::size_t index) {
  return fmt::format(fmt::runtime(pattern), index);
}

}  // namespace

SimulatedRack::SimulatedRack(std::vector<std::string> names)
    : images(std::make_unique<FakeImageStore>()), key(*io::SigningKey::generate()) {
  for (const auto& name : names) {
    const NodeName node(name);
    machines[node];
    auto& bmc = bmcs.fake(node);
    bmc.info.serial = "SN-" + name;
    bmc.info.macs = {indexed("52:54:00:00:00:{:02x}", machines.size())};
    bmc.components["BMC"] = {.version = "2.0.0", .activates = FakeBmc::Activates::BmcReset};
    bmc.components["BIOS"] = {.version = "1.4.0", .activates = FakeBmc::Activates::PowerCycle};
    bmc.on_power = [this, node](bmc::PowerState state) { power(node, state); };
  }
  write(folder / "bmc-password", "calvin\n");
  for (const char* file : {"slurm.conf", "munge.key"}) write(folder / file, file);
  declare("1.4.2", "44.0");
  images->add("bookworm", kImageDigest);
  agents.hold(TaskKind::WriteImage);
  agents.hold(TaskKind::InstallDriver);
  agents.hold(TaskKind::EraseDisks);
  agents.answer(TaskKind::Inspect,
                [this](const NodeName& node, const auto&) -> Result<std::string> {
                  return toJson(hardwareOf(node));
                });
  agents.answer(TaskKind::Probe, [this](const NodeName& node, const auto&) -> Result<std::string> {
    return json(machines[node].software).dump();
  });
  agents.answer(TaskKind::RunChecks, [this](const NodeName& node, const wire::AgentTask& task) {
    return runChecks(node, task);
  });
  agents.answer(TaskKind::Reboot,
                [this](const NodeName& node, const auto&) { return reboot(node); });
  agents.answer(TaskKind::ResetGpu,
                [this](const NodeName& node, const auto&) { return resetGpus(node); });
  agents.answer(TaskKind::KernelLog, [](const NodeName&, const auto&) -> Result<std::string> {
    return R"({"lines":["[ 12.0] NVRM: Xid"]})";
  });
  agents.answer(TaskKind::JoinPool,
                [this](const NodeName& node, const auto&) -> Result<std::string> {
                  machines[node].slurmd = true;
                  return R"({"slurmd": "22.05.8"})";
                });
  processes.answer = [this](const io::Command& command) { return slurm(command); };
}

SimulatedRack::~SimulatedRack() = default;

void SimulatedRack::declare(const std::string& bios, const std::string& driver) {
  std::string components;
  for (const auto& [name, version] :
       {std::pair<std::string, std::string>{"BMC", "2.1.0"}, {"BIOS", bios}}) {
    const auto file = name + "-" + version + ".fw",
               text = json{{"component", name}, {"version", version}}.dump() + "\n";
    write(folder / file, text);
    components +=
        fmt::format("{}{}: {{version: {}, file: {}, sha256: {}}}", components.empty() ? "" : ", ",
                    name, version, file, io::sha256Hex(text));
  }
  std::string nodes;
  std::size_t index = 0;
  for (const auto& [name, machine] : machines)
    nodes += fmt::format(
        "  - {{names: {0}, profile: gpu-node, mac: \"52:54:00:00:00:{1:02x}\", address: "
        "10.20.1.{1}, bmc: \"https://10.20.250.{1}\", "
        "serial: SN-{0}, rack: r1, unit: {1}}}\n",
        name.str(), ++index);
  const auto yaml = fmt::format(R"(cluster: {{name: simulated}}
networks:
  provisioning: {{cidr: 10.20.0.0/16, dhcp: {{mode: authoritative, range: 10.20.240.1-10.20.247.254}}}}
credentials:
  bmc: {{username: admin, password: {{file: bmc-password}}}}
images:
  bookworm: {{build: {{suite: bookworm, packages: [linux-image-amd64]}}}}
drivers:
  rdma: {{packages: ["rdma-core={1}"], verify: {{package.rdma-core: "{1}"}}}}
firmware:
  base: {{components: {{{0}}}, order: [BMC, BIOS]}}
gates:
  burn-in: {{level: quick, groups: [host]}}
pools:
  batch: {{slurm: {{partition: gpu}}}}
profiles:
  gpu-node: {{expect: {{gpus: 0, cpus_min: 1}}, image: bookworm, drivers: [rdma], firmware: base, gates: [burn-in], pool: batch}}
nodes:
{2})",
                                components, driver, nodes);
  write(folder / "cluster.yaml", yaml);
  auto loaded = inventory::load(folder / "cluster.yaml");
  std::string complaints;
  for (const auto& one : loaded.diagnostics.all()) complaints += one.str() + "\n";
  if (!loaded.cluster) throw std::runtime_error(complaints + yaml);
  cluster = std::move(*loaded.cluster);
}

void SimulatedRack::startJob(const std::string& node, std::chrono::seconds duration) {
  machines[NodeName(node)].job_ends_at = clock.steady() + duration;
}

bool SimulatedRack::inPool(const std::string& node) const {
  const auto& machine = machines.at(NodeName(node));
  return machine.slurmd && !machine.drained && agents.state(NodeName(node));
}

void SimulatedRack::forgetCounts() {
  for (auto& [node, machine] : machines) {
    machine.image_writes = 0;
    machine.driver_installs.clear();
    machine.reboots = machine.gpu_resets = machine.drains = 0;
    auto& bmc = bmcs.fake(node);
    for (auto& [name, component] : bmc.components) component.uploads = 0;
    bmc.power_cycles = bmc.bmc_resets = 0;
    bmc.calls.clear();
  }
}

void SimulatedRack::violate(const NodeName& node, const std::string& what) {
  violations.push_back(node.str() + ": " + what);
}

// ---- machines

void SimulatedRack::power(const NodeName& node, bmc::PowerState state) {
  auto& machine = machines[node];
  auto& bmc = bmcs.fake(node);
  agents.silence(node);
  machine.boots_at.reset();
  if (state == bmc::PowerState::Off) {
    resumeTasks();
    if (jobRuns(machine)) violate(node, "a job was killed by a power cut");
    for (const auto& held : held_)
      if (held.node == node)
        violate(node, fmt::format("power was cut while task {} ran", held.task.id));
    for (const auto& [uri, task] : bmc.task_by_uri)
      if (!task.finished) violate(node, "power was cut while " + task.component + " was flashed");
    return;
  }
  const bool network =
      bmc.booted_from == bmc::BootTarget::Pxe &&
      std::any_of(netboots.begin(), netboots.end(),
                  [&node](const FakeNetboot* each) { return each->armed.contains(node); });
  if (!network && machine.image.empty()) return;  // nothing to boot
  machine.boots_into = network ? Mode::Ram : Mode::Disk;
  machine.boots_at = clock.steady() + kBootTakes;
}

void SimulatedRack::boot(const NodeName& node, Machine& machine) {
  machine.boots_at.reset();
  auto& state = agents.boot(node, machine.boots_into, fmt::format("boot-{}", ++machine.boots));
  state.hardware = hardwareOf(node);
  state.image_digest = machine.boots_into == Mode::Disk ? machine.image : "";
  state.probes =
      machine.boots_into == Mode::Disk ? machine.software : std::map<std::string, std::string>{};
  tellHealth(node);
}

// ---- their health

void SimulatedRack::injectSymptom(const std::string& node, wire::Symptom symptom) {
  machines[NodeName(node)].symptoms.push_back(std::move(symptom));
  tellHealth(NodeName(node));
}

void SimulatedRack::tellHealth(const NodeName& node) {
  auto state = agents.state(node);
  if (!state) return;
  state->health.reset();
  if (state->mode == Mode::Disk) state->health = wire::HealthReport{machines[node].symptoms, {}};
  agents.setState(std::move(*state));
}

Result<std::string> SimulatedRack::reboot(const NodeName& node) {
  auto& machine = machines[node];
  if (jobRuns(machine)) violate(node, "a job was killed by a reboot");
  ++machine.reboots;
  if (machine.reboot_heals) machine.symptoms.clear();
  agents.silence(node);
  machine.boots_into = Mode::Disk;
  machine.boots_at = clock.steady() + kBootTakes;
  return "{}";
}

Result<std::string> SimulatedRack::resetGpus(const NodeName& node) {
  auto& machine = machines[node];
  if (jobRuns(machine)) violate(node, "a job was killed by a reset of its GPUs");
  ++machine.gpu_resets;
  if (machine.reset_heals) machine.symptoms.clear();
  tellHealth(node);
  return R"({"reset":[]})";
}

wire::Hardware SimulatedRack::hardwareOf(const NodeName& node) const {
  wire::Hardware hardware;
  const auto& macs = const_cast<FakeBmcFleet&>(bmcs).fake(node).info.macs;
  hardware.manufacturer = "muster";
  hardware.serial = "SN-" + node.str();
  hardware.cpus = 4;
  hardware.memory_bytes = 2ull << 30;
  hardware.nics = {{"eth0", macs.front(), "virtio_net"}};
  hardware.disks = {
      {"/dev/vda", "DISK-" + node.str(), "", "",
       machines.at(node).image.empty() ? "none" : "muster-root", 4ull << 30,
       machines.at(node).image.empty() ? wire::DiskUse::Empty : wire::DiskUse::System}};
  return hardware;
}

void SimulatedRack::resumeTasks() {
  for (; submissions_seen_ < agents.submitted().size(); ++submissions_seen_) {
    const auto& [node, task] = agents.submitted()[submissions_seen_];
    if (task.kind != TaskKind::WriteImage && task.kind != TaskKind::InstallDriver &&
        task.kind != TaskKind::EraseDisks)
      continue;
    if (jobRuns(machines[node]))
      violate(node, fmt::format("task {} was begun beside a job", task.id));
    const auto takes = task.kind == TaskKind::WriteImage   ? kImageTakes
                       : task.kind == TaskKind::EraseDisks ? kEraseTakes
                                                           : kDriverTakes;
    held_.push_back({node, task, clock.steady() + takes});
  }
}

void SimulatedRack::endTask(const Held& held) {
  auto& machine = machines[held.node];
  const auto params = json::parse(held.task.params);
  if (held.task.kind == TaskKind::WriteImage) {
    ++machine.image_writes;
    machine.image = params.at("digest");
    machine.software.clear();
    agents.finish(held.task.id, json{{"digest", machine.image}}.dump());
    return;
  }
  if (held.task.kind == TaskKind::EraseDisks) {
    eraseDisks(held.node, machine, held.task);
    return;
  }
  ++machine.driver_installs[params.at("name")];
  json running = json::object();
  for (const auto& [probe, pattern] : params.at("verify").items())
    running[probe] = machine.software[probe] = pattern.get<std::string>();
  if (auto state = agents.state(held.node)) {
    state->probes = machine.software;
    agents.setState(*state);
  }
  agents.finish(held.task.id, running.dump());
}

/// As an agent does: another machine's serial, or no permission, erases nothing.
void SimulatedRack::eraseDisks(const NodeName& node, Machine& machine,
                               const wire::AgentTask& task) {
  const auto params = json::parse(task.params);
  if (params.at("node_serial") != "SN-" + node.str()) violate(node, "another machine was meant");
  if (!params.at("wipe_allowed")) violate(node, "disks were to be erased without a permission");
  ++machine.erasures;
  if (!machine.erase_fails) machine.image.clear();
  const bool erased = !machine.erase_fails;
  agents.finish(task.id, json{{"node_serial", "SN-" + node.str()},
                              {"complete", erased},
                              {"left", json::array()},
                              {"disks", json::array({{{"disk", "/dev/vda"},
                                                      {"serial", "DISK-" + node.str()},
                                                      {"method", erased ? "overwrite" : ""},
                                                      {"level", erased ? "clear" : ""},
                                                      {"tried", json::array()},
                                                      {"places_checked", 514},
                                                      {"seconds", 60},
                                                      {"fault", erased ? "" : "I/O error"}}})}}
                             .dump());
}

void SimulatedRack::jumpWhen(std::function<bool()> due, std::chrono::hours jump) {
  jump_due_ = std::move(due);
  jump_ = jump;
}

void SimulatedRack::tick() {
  if (jump_due_ && jump_due_()) {
    wall.offset += jump_;
    jump_due_ = {};
  }
  if (on_tick) on_tick();
  resumeTasks();
  const auto now = clock.steady();
  for (auto& [node, machine] : machines)
    if (machine.boots_at && now >= *machine.boots_at) boot(node, machine);
  std::vector<Held> due;
  std::erase_if(
      held_, [&](const Held& held) { return now >= held.ends_at && (due.push_back(held), true); });
  for (const auto& held : due) endTask(held);
}

Result<std::string> SimulatedRack::runChecks(const NodeName& node, const wire::AgentTask& task) {
  if (jobRuns(machines[node])) violate(node, "a gate ran beside a job");
  std::vector<wire::CheckResult> results;
  const auto params = json::parse(task.params);
  for (const auto& check : params.at("checks")) {
    wire::CheckResult result;
    result.id = check.at("id");
    result.status = wire::CheckStatus::Pass;
    if (!broken_bios.empty() && bmcs.fake(node).components["BIOS"].version == broken_bios)
      result.status = wire::CheckStatus::Fail;
    if (result.id == "host.gemm") result.values["gemm_gflops"] = kGflops;
    results.push_back(result);
  }
  return toJson(results);
}

// ---- the scheduler

std::string SimulatedRack::slurmRecord(const NodeName& node) const {
  const auto& machine = machines.at(node);
  const bool job = jobRuns(machine), there = agents.state(node).has_value();
  std::string state = !machine.slurmd ? "DOWN" : job ? "ALLOCATED" : "IDLE";
  if (machine.drained) state += "+DRAIN";
  if (machine.slurmd && !there) state += "+NOT_RESPONDING";
  return fmt::format("NodeName={} CPUAlloc={} State={} SlurmdStartTime={}{}\n", node.str(),
                     job ? 4 : 0, state, machine.slurmd ? "2026-11-20T15:07:00" : "None",
                     machine.drain_reason.empty() ? "" : " Reason=" + machine.drain_reason);
}

Result<io::ProcessExit> SimulatedRack::slurm(const io::Command& command) {
  if (command.program == "squeue" && command.args.at(0) == "--all")
    return io::ProcessExit{};  // nothing is suspended
  if (command.program == "squeue") return io::ProcessExit{0, "job 17 of alice, 4:59 left\n", ""};
  if (command.args.at(0) == "show") {
    const bool one = command.args.size() > 2 && !command.args[2].starts_with("-");
    std::string out;
    for (const auto& [node, machine] : machines)
      if (!one || node.str() == command.args[2]) out += slurmRecord(node);
    return io::ProcessExit{0, out, ""};
  }
  auto& machine = machines.at(NodeName(command.args.at(1).substr(std::string("NodeName=").size())));
  machine.drained = command.args.at(2) == "State=DRAIN";
  if (machine.drained) ++machine.drains;
  machine.drain_reason =
      machine.drained ? command.args.at(3).substr(std::string("Reason=").size()) : "";
  return io::ProcessExit{};
}

// ---- a life of muster

namespace {

Async<std::vector<lifecycle::Fact>> noPartnersAskedFor(lifecycle::Subject) {
  co_return std::vector<lifecycle::Fact>{};
}

Async<ApplyReport> converge(lifecycle::Engine& engine, lifecycle::Store& store,
                            const inventory::Cluster& cluster, lifecycle::Phases phases) {
  ApplyReport last;
  for (int round = 0; round < kMaxRoundsOfALife; ++round) {
    CO_TRY(facts, co_await engine.observe({}));
    CO_TRY(policy, policyOf(store, {}));
    CO_TRY(plan, makePlan(cluster, facts, policy, phases));
    CO_TRY(report, co_await engine.apply(plan));
    last = std::move(report);
    if (!last.ok() || plan.empty()) co_return last;
  }
  last.failed = 1;
  last.problems.push_back("there is always something left to do");
  co_return last;
}

/// Machines go on by themselves while muster lives.
Task<void> pump(SimulatedRack& rack, const bool& stop) {
  for (auto left = std::chrono::duration_cast<std::chrono::seconds>(kLongestLife) / kTick;
       left > 0 && !stop; --left) {
    rack.tick();
    co_await rack.clock.sleep(kTick);
  }
}

Async<ApplyReport> beside(SimulatedRack& rack, Async<ApplyReport> work) {
  const auto stop = std::make_shared<bool>(false);
  auto executor = co_await asio::this_coro::executor;
  auto pumping = [](SimulatedRack& rack, std::shared_ptr<bool> stop) -> Task<void> {
    co_await pump(rack, *stop);
  };
  asio::co_spawn(executor, pumping(rack, stop), asio::detached);
  auto result = co_await std::move(work);
  *stop = true;
  co_return result;
}

}  // namespace

struct Process::Parts {
  std::unique_ptr<validate::CertificateStore> certificates;
  std::unique_ptr<lifecycle::QuarantineGate> lifted;
  std::unique_ptr<monitor::HealthGate> gate;
  std::unique_ptr<lifecycle::Phase> provision, firmware, validate, pool;
  std::unique_ptr<provision::Erasures> erasures;
};

Process::Process(SimulatedRack& rack, const inventory::Cluster& cluster, lifecycle::Store& store)
    : rack_(rack), parts_(std::make_unique<Parts>()) {
  rack.netboots.insert(&netboot_);
  auto& [certificates, lifted, gate, provision, firmware, validate, pool, erasures] = *parts_;
  certificates = validate::makeCertificateStore(cluster, store, rack.wall, rack.key,
                                                rack.folder / rack.state / "certificates");
  lifted = std::make_unique<lifecycle::QuarantineGate>(*certificates, store);
  gate = std::make_unique<monitor::HealthGate>(*lifted, store);
  const provision::ProvisionDeps deps{cluster,
                                      rack.bmcs,
                                      rack.agents,
                                      *rack.images,
                                      netboot_,
                                      rack.wall,
                                      "http://10.20.0.1:8080",
                                      "https://10.20.0.1:8443",
                                      "CA",
                                      "KEY"};
  provision = provision::makeProvisionPhase(deps);
  erasures = provision::makeErasePhase(deps, store);
  firmware = firmware::makeFirmwarePhase(cluster, rack.bmcs, rack.wall, workers);
  validate = validate::makeValidatePhase(cluster, rack.agents, *certificates, store, rack.wall,
                                         noPartnersAskedFor);
  pool = pool::makePoolPhase(
      cluster, rack.agents, *gate, rack.processes, rack.wall,
      {rack.folder / "slurm.conf", rack.folder / "slurm.conf", rack.folder / "munge.key", {}});
  phases = {provision.get(), erasures.get(), firmware.get(), validate.get(), pool.get()};
  engine = std::make_unique<lifecycle::Engine>(cluster, phases, store, rack.wall, nullptr);
}

Process::~Process() { rack_.netboots.erase(&netboot_); }

LifeEnd live(SimulatedRack& rack, lifecycle::Store& durable, Death death) {
  return live(rack, durable, death,
              [](auto& cluster, auto& engine, auto& store, const auto& phases) {
                return converge(engine, store, cluster.cluster(), phases);
              });
}

LifeEnd live(SimulatedRack& rack, lifecycle::Store& durable, Death death, const Work& work) {
  CrashStore store(durable, death.crash_at, death.lost);
  store.full_from = death.full_from;
  std::optional<std::chrono::steady_clock::time_point> since;
  store.refuses = [&rack, &since, death](int write) -> std::optional<CrashStore::Refusal> {
    if (death.trouble_from == CrashStore::kNever || write <= death.trouble_from)
      return std::nullopt;
    if (!since) since = rack.clock.steady();
    const bool by_count = write <= death.trouble_from + death.trouble_writes;
    if (!by_count && rack.clock.steady() - *since >= death.trouble_lasts) return std::nullopt;
    return death.trouble;
  };
  rack.jumpWhen(
      [&store, death] {
        return death.clock_jumps_at != CrashStore::kNever && store.writes >= death.clock_jumps_at;
      },
      death.jump);
  LifeEnd end;
  lifecycle::EffectiveCluster laid(rack.cluster);
  if (auto laying = lifecycle::applyOverlays(laid, durable); !laying)
    return {false, 0, false, 0, laying.error().str()};
  const auto& cluster = laid.cluster();
  {
    Process process(rack, cluster, store);
    auto report = runInVirtualTime(rack.clock,
                                   beside(rack, work(laid, *process.engine, store, process.phases)),
                                   &store.crashed, &process.workers);
    end = {store.crashed, store.writes, false, store.refused, {}};
    if (!end.crashed && report && !*report) end.problems = report->error().str();
    if (!end.crashed && report && *report) {
      end.ok = (*report)->ok();
      for (const auto& problem : (*report)->problems) end.problems += problem + "\n";
    }
  }
  rack.jumpWhen({}, {});
  return end;
}

}  // namespace muster::test
