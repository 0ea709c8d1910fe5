// SPDX-License-Identifier: Apache-2.0
// up and down: every step is repeatable, and a record of what down must remove is on disk before
// anything is made.
#include "lab/lab.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "fabric/discovery/discovery.h"
#include "fabric/fabric.h"
#include "fabric/topology/topology.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/lab.h"
#include "inventory/model/networks.h"
#include "lab/daemons.h"
#include "lab/netns.h"
#include "lab/twin_clock.h"
#include "lab/vbmc/config.h"
#include "lab/virt.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <cstdlib>

namespace muster::lab {

namespace {

using nlohmann::json;

constexpr std::chrono::seconds kEndGrace{3};
constexpr std::size_t kRackIdBytes = 8;
constexpr std::size_t kBytesPerMib = 1u << 20;

bool inMemory(const std::filesystem::path& folder) {
  struct statfs info{};
  return ::statfs(folder.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

/// Disks fill up with images: they must not lie in memory, where /run usually is.
std::filesystem::path disksFolder(const std::filesystem::path& folder, const std::string& name) {
  return inMemory(folder) ? std::filesystem::path("/var/lib/muster-lab") / name : folder / "disks";
}

/// Beside the folder, because down removes the folder.
std::filesystem::path lockFileOf(const std::filesystem::path& folder) {
  return folder.parent_path() / (folder.filename().string() + ".lock");
}

Result<json> readJson(const std::filesystem::path& file) {
  TRY(text, io::readFile(file));
  auto root = jsonOrNone(text, kKeptJson);
  if (!root.is_object())
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is not a JSON object; remove the folder after 'muster lab down'",
                            file.string()));
  return root;
}

/// What down needs, written before anything is made.
struct Record {
  std::string netns, disks, rack_id;
  bool ending = false;  ///< a down has begun: what is left is no rack any more

  Result<void> write(const std::filesystem::path& folder) const {
    json root = {{"netns", netns}, {"disks", disks}, {"rack_id", rack_id}, {"ending", ending}};
    return io::writeFileAtomic(Paths{folder, {}}.record(), jsonText(root, 2) + "\n");
  }
  static Result<std::optional<Record>> read(const std::filesystem::path& folder) {
    auto file = Paths{folder, {}}.record();
    std::error_code error;
    if (!std::filesystem::exists(file, error)) return std::nullopt;
    TRY(root, readJson(file));
    return Record{root.value("netns", ""), root.value("disks", ""), root.value("rack_id", ""),
                  root.value("ending", false)};
  }
};

/// Only where this folder has no record: whatever has the rack's name then is not this folder's.
Result<void> refuseForeign(const Rack& rack) {
  if (!namespaceExists(rack.netns)) return {};
  if (auto mark = markOf(rack.netns); mark && mark->folder == rack.paths.root)
    return removeNamespace(rack.netns);  // emptied before
  return fail(ErrorCode::Conflict, fmt::format("a network namespace {} exists that was not made "
                                               "from {}; is a lab of the same name up elsewhere?",
                                               rack.netns, rack.paths.root.string()));
}

/// Ends every rack that was made from this folder, but for the one with the id `but`, whatever
/// became of its name or its record.
Result<std::size_t> endRacksOf(const std::filesystem::path& folder, const std::string& but) {
  std::size_t processes = 0;
  for (const auto& marked : markedNamespaces()) {
    if (marked.folder != folder || (!but.empty() && marked.rack_id == but)) continue;
    TRY(ended, endProcessesOf(marked, kEndGrace));
    processes += ended;
  }
  return processes;
}

/// The rack may live although its name is gone: the name was made in a mount namespace that ended,
/// or removed by a command that was killed.
Result<void> findAgain(const Rack& rack) {
  if (namespaceExists(rack.netns)) return {};
  for (const auto& marked : markedNamespaces())
    if (marked.folder == rack.paths.root && marked.rack_id == rack.id)
      return nameNamespace(marked, rack.netns);
  return {};
}

Result<void> makeDisks(const inventory::Cluster& cluster, const Rack& rack) {
  TRY_OK(io::makeDirs(rack.paths.disks));
  for (const auto& node : rack.nodes) {
    io::Fd disk(::open(node.domain.disk.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    auto size = static_cast<off_t>(cluster.lab->disk_gib) * 1024 * static_cast<off_t>(kBytesPerMib);
    if (!disk.valid() || ::ftruncate(disk.get(), size) != 0)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot make the disk {}", node.domain.disk.string()));
  }
  return {};
}

Result<void> defineDomains(const Rack& rack) {
  TRY(virt, Virt::connect(rack.libvirt_uri));
  for (const auto& node : rack.nodes)
    if (!virt->running(node.domain.name)) TRY_OK(virt->define(domainXml(node.domain, {})));
  return {};
}

/// The accounts are set once: a BMC does not follow the inventory when a password changes there.
Result<std::string> vbmcConfig(const inventory::Cluster& cluster, const Rack& rack) {
  vbmc::Config config{rack.libvirt_uri, rack.paths.bmc(), {}};
  std::map<std::string, vbmc::Account> kept;
  if (auto text = io::readFile(rack.paths.bmc() / "vbmc.conf"))
    if (auto before = vbmc::Config::parse(*text))
      for (const auto& bmc : before->bmcs) kept[bmc.domain.name] = bmc.account;
  for (std::size_t index = 0; index < rack.nodes.size(); ++index) {
    const auto& planned = rack.nodes[index];
    const auto& node = cluster.nodes[index];
    auto credential = cluster.credentials.find(inventory::bmcCredentialOf(cluster, node));
    if (credential == cluster.credentials.end())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("the BMC of {} has no credential", node.name.str()));
    auto account = kept.find(planned.domain.name);
    if (account == kept.end()) {
      TRY(password, credential->second.password.read());
      const auto& username = node.bmc.username_override.empty() ? credential->second.username
                                                                : node.bmc.username_override;
      account =
          kept.emplace(planned.domain.name, vbmc::Account::make(username, password.reveal())).first;
    }
    config.bmcs.push_back({planned.bmc_address.str(), planned.bmc_port, account->second,
                           planned.domain, cluster.lab->bmc});
  }
  return config.str();
}

/// The InfiniBand fabrics, each in an ibsim of its own; where there is but one fabric, it is
/// simulated whatever it is.
Result<std::vector<SimulatedFabric>> fabricsOf(const inventory::Cluster& cluster,
                                               const Rack& rack) {
  auto fabrics = inventory::managedFabrics(cluster);
  if (fabrics.size() > 1) fabrics = inventory::infiniBandFabrics(cluster);
  const auto* main = inventory::mainFabric(cluster);
  std::vector<SimulatedFabric> out;
  for (const auto* each : fabrics) {
    TRY(topology, fabric::declaredTopology(cluster, *each));
    const bool is_main = each == main;
    SimulatedFabric one{
        each->name,
        is_main,
        is_main ? rack.paths.fabric() : rack.paths.fabric(each->name),
        fabric::toIbsimNet(topology),
        {{"IBSIM_SOCKNAME", is_main ? rack.netns : fmt::format("{}-{}", rack.netns, each->name)}}};
    auto seat = topology.devices.find(fabric::controllerHca(*each));
    if (seat == topology.devices.end())
      seat = std::find_if(topology.devices.begin(), topology.devices.end(),
                          [](const auto& entry) { return !entry.second.is_switch; });
    if (seat != topology.devices.end()) one.env["SIM_HOST"] = fabric::ibsimNodeId(seat->first);
    out.push_back(std::move(one));
  }
  return out;
}

LabHandle handleOf(const Rack& rack, const std::vector<SimulatedFabric>& simulated) {
  LabHandle lab;
  lab.name = rack.name;
  lab.id = rack.id;
  lab.folder = rack.paths.root;
  lab.netns = rack.netns;
  lab.libvirt_uri = rack.libvirt_uri;
  lab.slurm_conf = rack.paths.slurm() / "slurm.conf";
  lab.slurm_node_conf = rack.paths.slurm() / "slurm-node.conf";
  lab.munge_key = rack.paths.munge() / "munge.key";
  lab.munge_socket = rack.paths.munge() / "munge.socket";
  for (const auto& one : simulated) {
    if (one.is_main || simulated.size() == 1) lab.fabric_env = one.env;
    lab.fabrics[one.name] = one.env;
  }
  return lab;
}

Result<void> writeHandle(const LabHandle& lab, const Rack& rack) {
  json nodes = json::array();
  for (const auto& node : rack.nodes)
    nodes.push_back({{"name", node.domain.name},
                     {"bmc_url", node.bmc_url},
                     {"console", node.domain.console_log.string()},
                     {"console_socket", node.domain.console_socket.string()}});
  json root = {{"name", lab.name},
               {"id", lab.id},
               {"folder", lab.folder.string()},
               {"netns", lab.netns},
               {"libvirt_uri", lab.libvirt_uri},
               {"slurm_conf", lab.slurm_conf.string()},
               {"slurm_node_conf", lab.slurm_node_conf.string()},
               {"munge_key", lab.munge_key.string()},
               {"munge_socket", lab.munge_socket.string()},
               {"fabric_env", lab.fabric_env},
               {"fabrics", lab.fabrics},
               {"nodes", nodes}};
  return io::writeFileAtomic(rack.paths.handle(), jsonText(root, 2) + "\n");
}

/// Daemons start side by side; those that need another one wait for it.
Result<LabHandle> makeAll(const inventory::Cluster& cluster, const Rack& rack, const Say& say) {
  TRY(simulated, fabricsOf(cluster, rack));
  TRY(config, vbmcConfig(cluster, rack));
  for (const auto& folder : {rack.paths.bmc(), rack.paths.console(), rack.paths.fabric(),
                             rack.paths.munge(), rack.paths.slurm()})
    TRY_OK(io::makeDirs(folder));
  for (const char* folder : {"pids", "log"}) TRY_OK(io::makeDirs(rack.paths.root / folder));
  say(fmt::format("network namespace {}: bridge {} with {}/{}", rack.netns, rack.bridge,
                  rack.controller.str(), rack.network.prefix_bits));
  TRY_OK(makeNamespace(rack));
  auto munge = mungeDaemon(rack);
  std::vector<Daemon> first{libvirtDaemon(rack, cacheFolder() / "libvirt"), munge};
  for (const auto& one : simulated) {
    TRY_OK(io::makeDirs(one.folder));
    first.push_back(ibsimDaemon(rack, one));
  }
  for (const auto& daemon : first) TRY_OK(startDaemon(rack, daemon));
  TRY_OK(makeDisks(cluster, rack));
  TRY_OK(awaitReady(rack, munge));
  auto slurm = slurmDaemon(rack, slurmConf(cluster, rack, true), slurmConf(cluster, rack, false));
  TRY_OK(startDaemon(rack, slurm));
  for (const auto& daemon : first) TRY_OK(awaitReady(rack, daemon));
  say("libvirt, munge and the simulated fabric answer");
  TRY_OK(defineDomains(rack));
  auto bmcs = vbmcDaemon(rack, config);
  TRY_OK(startDaemon(rack, bmcs));
  TRY_OK(awaitReady(rack, bmcs));
  TRY_OK(awaitReady(rack, slurm));
  say(fmt::format("{} nodes are cabled and off; their BMCs and slurmctld answer",
                  rack.nodes.size()));
  auto lab = handleOf(rack, simulated);
  TRY_OK(writeHandle(lab, rack));
  if (const double slower = measureInto(rack.paths.root); slower > 1)
    say(
        fmt::format("this machine is up to {0:g} times slower than an idle one: deadlines are "
                    "{0:g} times as long",
                    slower));
  return lab;
}

/// `down` removes the folder with all that is in it, so it must be the lab's own from the start.
Result<void> refuseFolderOfSomebodyElse(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error) ||
      std::filesystem::exists(Paths{folder, {}}.record(), error))
    return {};
  if (std::filesystem::is_directory(folder, error) && std::filesystem::is_empty(folder, error))
    return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format("{} is not empty and no lab made it; name a folder of the lab's own (MUSTER_LAB)",
                  folder.string()));
}

Result<void> removeAll(const std::filesystem::path& folder, const Say& say) {
  auto record_file = Paths{folder, {}}.record();
  std::error_code error;
  TRY(record, Record::read(folder));
  if (!record) return {};
  const auto& netns = record->netns;
  if (!netns.starts_with("muster-"))
    return fail(ErrorCode::Corrupt,
                fmt::format("{} does not name a lab's namespace", record_file.string()));
  if (!record->disks.empty() &&
      record->disks != disksFolder(folder, netns.substr(std::string_view("muster-").size())))
    return fail(ErrorCode::Corrupt,
                fmt::format("{} names {} as the folder of the disks; that is not the lab's",
                            record_file.string(), record->disks));
  record->ending = true;
  TRY_OK(record->write(folder));
  auto processes = processesIn(netns).size();
  TRY_OK(endProcessesIn(netns, kEndGrace));
  TRY(nameless, endRacksOf(folder, {}));
  TRY_OK(removeNamespace(netns));
  if (!record->disks.empty()) std::filesystem::remove_all(record->disks, error);
  // The record goes last: a down that is cut short can be repeated.
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path() != record_file) std::filesystem::remove_all(entry.path(), error);
  std::filesystem::remove_all(folder, error);
  if (std::filesystem::exists(folder))
    return fail(ErrorCode::Internal,
                fmt::format("cannot remove {}: {}", folder.string(), error.message()));
  say(fmt::format("lab is down: {} processes ended, namespace {} and {} removed",
                  processes + nameless, netns, folder.string()));
  return {};
}

/// Whether a whole rack is there already, of the record's id. Everything else that an earlier rack
/// of this folder has left is removed.
Result<std::optional<std::string>> standingRack(const std::filesystem::path& folder,
                                                const Say& say) {
  TRY(record, Record::read(folder));
  std::error_code error;
  if (record && !record->ending && !record->rack_id.empty() &&
      std::filesystem::exists(Paths{folder, {}}.handle(), error)) {
    TRY_OK(endRacksOf(folder, record->rack_id));
    return record->rack_id;
  }
  if (record) {
    say("an earlier 'muster lab' was cut short here; what it left is removed");
    TRY_OK(removeAll(folder, say));
    TRY_OK(io::makeDirs(folder));
  } else {
    TRY(processes, endRacksOf(folder, {}));
    if (processes)
      say(fmt::format("an earlier rack of {} had lost its record; its {} processes are ended",
                      folder.string(), processes));
  }
  return std::nullopt;
}

}  // namespace

std::filesystem::path cacheFolder() {
  if (auto* set = std::getenv("MUSTER_CACHE"); set && *set) return set;
  auto* home = std::getenv("HOME");
  return std::filesystem::path(home && *home ? home : "/var/cache") / ".cache" / "muster";
}

Result<LabHandle> up(const inventory::Cluster& cluster, const std::filesystem::path& folder,
                     Say say) {
  if (::geteuid() != 0)
    return fail(ErrorCode::Denied, "the lab makes network namespaces and mounts; run it as root");
  TRY_OK(refuseFolderOfSomebodyElse(folder));
  TRY_OK(io::makeDirs(folder));
  auto lock = io::FileLock::take(lockFileOf(folder));
  if (!lock) return fail(lock.error().within("another 'muster lab' works on this folder"));
  auto accel = provenAccel(cacheFolder() / "accel", say);
  auto planned = planRack(cluster, Paths{folder, disksFolder(folder, cluster.name)}, accel);
  if (!planned) return std::unexpected(planned.error());
  TRY(standing, standingRack(folder, say));
  if (standing) {
    planned->id = *standing;
    TRY_OK(findAgain(*planned));
  } else {
    std::error_code error;
    TRY_OK(refuseForeign(*planned));
    planned->id = io::randomToken(kRackIdBytes);
    std::filesystem::remove_all(
        planned->paths.disks,
        error);  // of a rack that a restart of this machine took: a new rack's disks are empty
    TRY_OK(
        (Record{planned->netns, planned->paths.disks.string(), planned->id, false}.write(folder)));
  }
  auto made = makeAll(cluster, *planned, say);
  if (!made && !standing)
    if (auto undone = removeAll(folder, say); !undone)
      say(fmt::format("undoing it failed too: {}", undone.error().str()));
  return made;
}

Result<void> down(const std::filesystem::path& folder, Say say) {
  std::error_code error;
  if (!std::filesystem::exists(folder, error)) {
    TRY(processes, endRacksOf(folder, {}));
    if (processes)
      say(fmt::format("the folder {} was gone; its lab's {} processes are ended", folder.string(),
                      processes));
    return {};
  }
  auto lock = io::FileLock::take(lockFileOf(folder));
  if (!lock) return fail(lock.error().within("another 'muster lab' works on this folder"));
  TRY_OK(removeAll(folder, say));
  std::filesystem::remove(lockFileOf(folder), error);
  return {};
}

Result<std::optional<LabHandle>> find(const std::filesystem::path& folder) {
  auto file = Paths{folder, {}}.handle();
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  TRY(root, readJson(file));
  LabHandle lab;
  lab.name = root.value("name", "");
  lab.id = root.value("id", "");
  lab.folder = root.value("folder", "");
  lab.netns = root.value("netns", "");
  lab.libvirt_uri = root.value("libvirt_uri", "");
  lab.slurm_conf = root.value("slurm_conf", "");
  lab.slurm_node_conf = root.value("slurm_node_conf", "");
  lab.munge_key = root.value("munge_key", "");
  lab.munge_socket = root.value("munge_socket", "");
  lab.fabric_env = root.value("fabric_env", std::map<std::string, std::string>());
  lab.fabrics = root.value("fabrics", decltype(lab.fabrics)());
  if (!namespaceExists(lab.netns)) return std::nullopt;  // the machine was restarted since
  return lab;
}

Result<std::vector<NodeStatus>> status(const LabHandle& lab) {
  TRY(root, readJson(Paths{lab.folder, {}}.handle()));
  TRY(virt, Virt::connect(lab.libvirt_uri));
  std::vector<NodeStatus> nodes;
  for (const auto& node : root.value("nodes", json::array())) {
    NodeStatus entry{node.value("name", ""), "unknown", node.value("bmc_url", ""),
                     node.value("console", "")};
    if (auto on = virt->running(entry.name)) entry.power = *on ? "on" : "off";
    nodes.push_back(std::move(entry));
  }
  return nodes;
}

Result<void> enter(const LabHandle& lab) { return enterNamespace(lab.netns); }

Result<void> fault(const LabHandle& lab, std::string_view console_line, const std::string& fabric) {
  const Paths paths{lab.folder, {}};
  const auto own = lab.fabrics.find(fabric);
  if (!fabric.empty() && own == lab.fabrics.end())
    return fail(ErrorCode::NotFound, fmt::format("the lab simulates no fabric {}", fabric));
  const bool is_main = fabric.empty() || own->second == lab.fabric_env;
  auto console = (is_main ? paths.fabric() : paths.fabric(fabric)) / "console";
  io::Fd fifo(::open(console.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fifo.valid())
    return fail(ErrorCode::NotFound,
                fmt::format("no simulated fabric listens at {}", console.string()));
  auto line = std::string(console_line) + "\n";
  if (::write(fifo.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    return fail(ErrorCode::Unavailable, "the simulated fabric's console takes no more input");
  return {};
}

}  // namespace muster::lab
