// SPDX-License-Identifier: Apache-2.0
#include "validate/gates.h"

#include "inventory/model/cluster.h"
#include "inventory/model/drivers.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/gates.h"
#include "inventory/model/images.h"
#include "inventory/model/node_network.h"
#include "inventory/model/profile.h"
#include "inventory/model/rails.h"
#include "validate/bmc_gate.h"
#include "validate/checks/check_row.h"
#include "validate/checks/rdma_devices.h"
#include "validate/gate_params.h"
#include "validate/peer_baseline.h"
#include "wire/links/bit_errors.h"

#include <algorithm>
#include <array>
#include <limits>

namespace muster::validate {
namespace {

using inventory::GateLevel;
using std::chrono::seconds;

/// What the levels mean for the engines and for time. A gate on all groups of a node with eight
/// NVMe disks must fit into its level's time box: a minute, a quarter of an hour, two hours, half a
/// day.
struct LevelRow {
  GateLevel level;
  double gemm_seconds;
  int memory_mebibytes;  ///< or, when 0:
  int memory_percent;
  double memory_seconds, hold_seconds;
  double stream_seconds;  ///< of the memory's bandwidth
  double link_seconds;    ///< in which no link may count an error
  double gpu_seconds;     ///< of each of muster-burn's fifteen stages; 0: it is not asked for
  double disk_seconds;    ///< of each NVMe disk
  int disk_mebibytes;     ///< written on each of their file systems, and read back
  int dcgm_level;         ///< its run times: 30 s, 2 min, 15 min, 1–2 h
  const char* nccl_max;   ///< largest message of nccl-tests
  seconds expected, deadline;
};
constexpr std::array kLevels{
    LevelRow{GateLevel::Quick, 4, 32, 0, 5, 0, 1, 10, 0, 1, 0, 1, "1G", seconds(20), seconds(300)},
    LevelRow{GateLevel::Medium, 60, 0, 25, 150, 0, 5, 30, 15, 5, 1024, 2, "8G", seconds(840),
             seconds(1800)},
    LevelRow{GateLevel::Long, 900, 0, 80, 1800, 30, 30, 300, 120, 30, 4096, 3, "8G", seconds(6900),
             seconds(9000)},
    LevelRow{GateLevel::Soak, 5400, 0, 80, 9000, 120, 60, 3600, 900, 300, 16384, 4, "8G",
             seconds(43000), seconds(50000)},
};

const LevelRow& rowOf(GateLevel level) {
  return *std::find_if(kLevels.begin(), kLevels.end(),
                       [level](const auto& row) { return row.level == level; });
}

/// Floors for ib_write_bw in Gb/s, where somebody has published one.
struct FloorRow {
  std::string_view device_prefix, speed;
  double gbits;
  std::string_view source;
};
constexpr std::array kFloors{
    FloorRow{"mlx5", "NDR", 360, "sichek, 400 Gb/s rails"},
    FloorRow{"mlx5", "HDR", 180, "Azure node health checks, 200 Gb/s rails"},
    FloorRow{"mlx5", "EDR", 90, "0.9 of 100 Gb/s"},
    FloorRow{"mlx5", "FDR", 48, "0.9 of 54 Gb/s"},
};
struct CeilingRow {
  std::string_view device_prefix;
  double us;
  std::string_view source;
};
constexpr std::array kCeilings{
    CeilingRow{"mlx5", 5, "oci-hpc node checks, ib_write_lat over a RoCE fabric of three levels"}};
constexpr double kPairShareOfLine =
    0.85;  ///< of other devices and links, as the rows above have it: 360 of 425
constexpr double kDataShareOfLine =
    0.94;  ///< of FEC and encoding: the kernel says 400 Gb/s of 425 on the line
constexpr double kSoftGbits =
    0.001;  ///< soft-RoCE is bound by the CPU: it proves that packets and the stack work
constexpr seconds kLongestCheck{24 * 3600};  ///< an agent takes no longer limit (agent/tasks)
constexpr double kMovesDataGbits = 1;        ///< where no link is declared

std::optional<double> lineGbits(std::string_view link) {
  const auto bits = links::lineBitsPerSecond(link);
  return bits ? std::optional(*bits * 1e-9) : std::nullopt;
}

bool has(const inventory::Gate& gate, std::string_view group) {
  return std::find(gate.groups.begin(), gate.groups.end(), group) != gate.groups.end();
}

/// What a gate asks for, of whom.
struct Asked {
  const inventory::Cluster& cluster;
  const inventory::Profile& profile;
  const LevelRow& level;
  seconds limit;  ///< of one check

  bool amd() const {
    return profile.expect.gpu_model.starts_with("MI") ||
           profile.expect.gpu_model.find("Instinct") != std::string::npos;
  }
  std::string nvmlDriver() const {
    for (const auto& name : profile.drivers)
      if (const auto& verify = cluster.drivers.at(name).verify; verify.contains("nvml.driver"))
        return verify.at("nvml.driver");
    return {};
  }
  std::string link() const {
    const auto fabric = cluster.fabrics.find(profile.fabric);
    return fabric == cluster.fabrics.end() ? "" : fabric->second.nodeLink();
  }
};

using Params = std::optional<nlohmann::json>;
constexpr int kSwitchedGpus = 8;  ///< so many SXM GPUs in one node reach each other by NVSwitches

Params gpuCount(const Asked& asked) {
  return asked.profile.expect.gpus ? Params(nlohmann::json{{"count", *asked.profile.expect.gpus}})
                                   : std::nullopt;
}
/// Where the profile says its rails sit, and which GPU each serves; NVML's numbers say nothing of
/// AMD's GPUs.
Params gpuAffinity(const Asked& asked) {
  auto rails = nlohmann::json::array();
  for (const auto& rail : asked.profile.rails) {
    nlohmann::json one{{"hca", rail.hca}};
    if (!rail.pci.empty()) one["pci"] = rail.pci;
    if (rail.gpu && !asked.amd()) one["gpu"] = *rail.gpu;
    if (one.size() > 1) rails.push_back(std::move(one));
  }
  return Params(rails.empty() ? nlohmann::json::object()
                              : nlohmann::json{{"rails", std::move(rails)}});
}
Params smi(const Asked& asked) {
  return asked.profile.expect.gpus ? Params(nlohmann::json{{"gpus", *asked.profile.expect.gpus}})
                                   : Params(nlohmann::json::object());
}
Params gpuModel(const Asked& asked) {
  return asked.profile.expect.gpu_model.empty()
             ? std::nullopt
             : Params(nlohmann::json{{"model", asked.profile.expect.gpu_model}});
}
Params gpuDriver(const Asked& asked) {
  return asked.nvmlDriver().empty() ? std::nullopt
                                    : Params(nlohmann::json{{"driver", asked.nvmlDriver()}});
}
Params gpuFabric(const Asked& asked) {
  return asked.profile.expect.gpus == kSwitchedGpus &&
                 asked.profile.expect.gpu_model.find("PCIe") == std::string::npos
             ? Params(nlohmann::json::object())
             : std::nullopt;
}
/// GPUs that sit beside a Grace processor; others have no such links.
Params gpuC2c(const Asked& asked) {
  for (const char* grace : {"GH200", "GB200", "GB300"})
    if (asked.profile.expect.gpu_model.find(grace) != std::string::npos) return smi(asked);
  return std::nullopt;
}
/// Of HGX boards whose switches are on PCI: A100 and Hopper with eight GPUs.
Params gpuNvswitch(const Asked& asked) {
  if (!gpuFabric(asked)) return std::nullopt;
  const auto& model = asked.profile.expect.gpu_model;
  const auto is = [&model](std::string_view part) { return model.find(part) != std::string::npos; };
  if (is("NVL") || is("GH200")) return std::nullopt;
  if (is("A100") || is("A800")) return Params(nlohmann::json{{"switches", 6}});
  for (const char* hopper : {"H100", "H200", "H800", "H20"})
    if (is(hopper)) return Params(nlohmann::json{{"switches", 4}});
  return std::nullopt;
}
Params gpuAmd(const Asked& asked) {
  if (!asked.amd()) return std::nullopt;
  nlohmann::json params{{"model", asked.profile.expect.gpu_model}};
  if (asked.profile.expect.gpus) params["count"] = *asked.profile.expect.gpus;
  return params;
}
Params amdSmi(const Asked& asked) { return asked.amd() ? smi(asked) : std::nullopt; }
/// rccl-tests are built from the same sources; how many GPUs there are is the profile's word, as
/// NVML knows none of them.
Params gpuNcclTests(const Asked& asked) {
  nlohmann::json params{{"max_bytes", asked.level.nccl_max}};
  if (asked.profile.expect.gpus) params["gpus"] = *asked.profile.expect.gpus;
  if (asked.amd()) params["model"] = asked.profile.expect.gpu_model;
  return params;
}
/// The HCAs of the compute fabric, at the rate of its link.
Params gpuNcclLoopback(const Asked& asked) {
  const auto fabric = asked.cluster.fabrics.find(asked.profile.fabric);
  if (fabric == asked.cluster.fabrics.end()) return std::nullopt;
  nlohmann::json params{{"max_bytes", asked.level.nccl_max},
                        {"devices", inventory::hcasOn(asked.profile, fabric->second)}};
  if (asked.profile.expect.gpus) params["gpus"] = *asked.profile.expect.gpus;
  if (const auto line = lineGbits(fabric->second.nodeLink()))
    params["port_gbits"] = kDataShareOfLine * *line;
  if (const auto& roce = fabric->second.roce)
    params.update({{"gid_index", roce->gid_index}, {"traffic_class", roce->trafficClass()}});
  return params;
}
/// How many GPUs there must be is the profile's word; without it NVML's.
Params gpuDcgm(const Asked& asked) {
  nlohmann::json params{{"level", asked.level.dcgm_level}, {"limit_seconds", asked.limit.count()}};
  if (asked.profile.expect.gpus) params["gpus"] = *asked.profile.expect.gpus;
  return params;
}
Params diskRead(const Asked& asked) {
  return Params(nlohmann::json{{"seconds", asked.level.disk_seconds}});
}
Params diskWrite(const Asked& asked) {
  return Params(nlohmann::json{{"mebibytes", asked.level.disk_mebibytes}});
}
Params gpuBurn(const Asked& asked) {
  nlohmann::json params{{"seconds", asked.level.gpu_seconds},
                        {"hold_seconds", asked.level.hold_seconds},
                        {"limit_seconds", asked.limit.count()}};
  if (asked.amd()) params["model"] = asked.profile.expect.gpu_model;
  return params;
}
Params hostGemm(const Asked& asked) {
  return Params(nlohmann::json{{"seconds", asked.level.gemm_seconds}});
}
Params hostMemory(const Asked& asked) {
  // Half of the gate's time for one round at the very least: a busy machine is measured as slow,
  // and not taken for broken memory.
  nlohmann::json params{{"seconds", asked.level.memory_seconds},
                        {"hold_seconds", asked.level.hold_seconds},
                        {"limit_seconds", asked.limit.count() / 2}};
  if (asked.level.memory_mebibytes) params["mebibytes"] = asked.level.memory_mebibytes;
  if (asked.level.memory_percent) params["percent_of_available"] = asked.level.memory_percent;
  return params;
}
Params hostStream(const Asked& asked) {
  return Params(nlohmann::json{{"seconds", asked.level.stream_seconds}});
}
/// Symbol errors are InfiniBand's; how long is long enough the check knows from the link's rate.
Params rdmaLinks(const Asked& asked) {
  for (const auto& name : inventory::fabricsOf(asked.profile))
    if (const auto fabric = asked.cluster.fabrics.find(name);
        fabric != asked.cluster.fabrics.end() && !fabric->second.roce)
      return Params(nlohmann::json{{"window_seconds", asked.level.link_seconds}});
  return std::nullopt;
}
nlohmann::json portOf(const inventory::Fabric& fabric) {
  nlohmann::json out{{"link_layer", fabric.roce ? "Ethernet" : "InfiniBand"}};
  if (const auto line = lineGbits(fabric.nodeLink())) out["min_gbits"] = kDataShareOfLine * *line;
  return out;
}
/// Every port that is of the fabric's kind, at the rate of its link; of several fabrics the ports
/// of every rail, each as its own fabric.
Params rdmaPorts(const Asked& asked) {
  if (!asked.profile.other_fabrics.empty()) {
    auto devices = nlohmann::json::object();
    for (const auto& name : inventory::fabricsOf(asked.profile))
      if (const auto fabric = asked.cluster.fabrics.find(name);
          fabric != asked.cluster.fabrics.end())
        for (const auto& hca : inventory::hcasOn(asked.profile, fabric->second))
          devices[hca] = portOf(fabric->second);
    return Params(nlohmann::json{{"devices", std::move(devices)}});
  }
  const auto fabric = asked.cluster.fabrics.find(asked.profile.fabric);
  if (fabric == asked.cluster.fabrics.end() || !lineGbits(asked.link()))
    return Params(nlohmann::json::object());
  return Params(portOf(fabric->second));
}
/// Of nodes that were given one.
Params systemNetwork(const Asked& asked) {
  return asked.profile.network ? Params(nlohmann::json::object()) : std::nullopt;
}
/// Of nodes whose boot order the installation has mended.
Params systemBootOrder(const Asked& asked) {
  const auto image = asked.cluster.images.find(asked.profile.image);
  const bool written =
      image != asked.cluster.images.end() && image->second.kind == inventory::ImageKind::RootFs;
  return written && asked.profile.boot == inventory::BootMode::Uefi
             ? Params(nlohmann::json::object())
             : std::nullopt;
}
Params rdmaCount(const Asked& asked) {
  return asked.profile.expect.nics ? Params(nlohmann::json{{"count", *asked.profile.expect.nics}})
                                   : std::nullopt;
}

/// Checks that need words of the inventory; nullopt: the profile says nothing that could be
/// expected. All others are asked without.
struct ParamRow {
  std::string_view id;
  Params (*make)(const Asked&);
};
constexpr std::array kParams{
    ParamRow{"disk.read", diskRead},
    ParamRow{"disk.write", diskWrite},
    ParamRow{"gpu.dcgm", gpuDcgm},
    ParamRow{"gpu.affinity", gpuAffinity},
    ParamRow{"gpu.amd", gpuAmd},
    ParamRow{"gpu.amd-throttle", amdSmi},
    ParamRow{"gpu.burn", gpuBurn},
    ParamRow{"gpu.c2c", gpuC2c},
    ParamRow{"gpu.count", gpuCount},
    ParamRow{"gpu.driver", gpuDriver},
    ParamRow{"gpu.fabric", gpuFabric},
    ParamRow{"gpu.gds", smi},
    ParamRow{"gpu.model", gpuModel},
    ParamRow{"gpu.nccl-loopback", gpuNcclLoopback},
    ParamRow{"gpu.nccl-tests", gpuNcclTests},
    ParamRow{"gpu.nvswitch", gpuNvswitch},
    ParamRow{"gpu.memory-temperature", smi},
    ParamRow{"gpu.processes", smi},
    ParamRow{"gpu.settings", smi},
    ParamRow{"gpu.sram-ecc", smi},
    ParamRow{"gpu.xgmi", amdSmi},
    ParamRow{"host.gemm", hostGemm},
    ParamRow{"host.memory", hostMemory},
    ParamRow{"host.stream", hostStream},
    ParamRow{"rdma.count", rdmaCount},
    ParamRow{"rdma.links", rdmaLinks},
    ParamRow{"rdma.ports", rdmaPorts},
    ParamRow{"system.boot-order", systemBootOrder},
    ParamRow{"system.network", systemNetwork},
};

Params paramsOf(std::string_view id, const Asked& asked) {
  if (asked.amd() && id.starts_with("gpu.") && id != "gpu.affinity" && !id.starts_with("gpu.amd") &&
      id != "gpu.burn" && id != "gpu.nccl-tests" && id != "gpu.xgmi")
    return std::nullopt;  // NVML knows nothing of them
  const auto row = std::find_if(kParams.begin(), kParams.end(),
                                [id](const auto& each) { return each.id == id; });
  return row == kParams.end() ? Params(nlohmann::json::object()) : row->make(asked);
}

}  // namespace

Result<std::vector<CheckRequest>> localChecks(const inventory::Cluster& cluster,
                                              const inventory::Profile& profile,
                                              const inventory::Gate& gate, double slowness) {
  std::vector<CheckRequest> checks;
  const auto& level = rowOf(gate.level);
  const auto longer =
      seconds(static_cast<seconds::rep>(static_cast<double>(level.deadline.count()) * slowness));
  const Asked asked{cluster, profile, level,
                    std::max(level.deadline, std::min(kLongestCheck, longer))};
  for (const auto& group : gate.groups) {
    bool known = group == "gdr" || group == kBmcGroup;  // no agent's
    for (const auto& row : catalogue()) {
      known = known || row.group == group;
      if (row.group != group || row.level > gate.level) continue;
      if (auto params = paramsOf(row.id, asked)) {
        setOwnParams(gate, row.id, *params);
        checks.push_back({std::string(row.id), params->dump(), asked.limit});
      }
    }
    if (!known)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("gate {} asks for checks on '{}', which the catalogue does not have",
                              gate.name, group));
  }
  return checks;
}

bool wantsRdmaPair(const inventory::Gate& gate) { return has(gate, "rdma"); }
bool wantsGdrPair(const inventory::Gate& gate) { return has(gate, "gdr"); }
bool wantsBmc(const inventory::Gate& gate) { return has(gate, kBmcGroup); }

std::string pairLink(const inventory::Fabric* fabric) {
  if (!fabric) return "";
  std::vector<std::string> classes{fabric->nodeLink()};
  const bool is_tree = fabric->shape != inventory::FabricShape::Explicit;
  if (is_tree && fabric->spines_per_su > 0) classes.push_back(fabric->leafSpineLink());
  if (is_tree && fabric->cores > 0) classes.push_back(fabric->spineCoreLink());
  return std::ranges::min(classes, {}, [](const std::string& link) {
    return lineGbits(link).value_or(std::numeric_limits<double>::max());
  });
}

double rdmaFloorGbits(std::string_view device, std::string_view link) {
  if (isSoftRdma(device)) return kSoftGbits;
  for (const auto& row : kFloors)
    if (device.starts_with(row.device_prefix) && link.ends_with(row.speed) &&
        link.starts_with("4x"))
      return row.gbits;
  const auto line = lineGbits(link);
  return line ? kPairShareOfLine * *line : kMovesDataGbits;
}

std::optional<double> rdmaCeilingUs(std::string_view device) {
  for (const auto& row : kCeilings)
    if (device.starts_with(row.device_prefix)) return row.us;
  return std::nullopt;
}

int rdmaIterations(double floor_gbits, seconds load) {
  constexpr double kMessageBits = 8.0 * 65536, kMost = 5e7;  // perftest takes a hundred million
  constexpr int kLeast = 200;
  const double messages = floor_gbits * 1e9 * static_cast<double>(load.count()) / kMessageBits;
  return std::max(kLeast, static_cast<int>(std::min(messages, kMost)));
}

seconds gateExpected(const inventory::Gate& gate) { return rowOf(gate.level).expected; }
seconds gateDeadline(const inventory::Gate& gate) { return rowOf(gate.level).deadline; }

std::string_view adviceFor(std::string_view check_id, wire::CheckStatus status) {
  if (status == wire::CheckStatus::Timeout)
    return "no fault was found, the time was too short: check what else loads the machine, and run "
           "the gate again; give the check more seconds in the gate's own parameters only where "
           "this machine is known to be that slow";
  return adviceFor(check_id);
}

std::string_view adviceFor(std::string_view check_id) {
  if (check_id == "rdma.pair")
    return "repeat with another partner; if it follows this node check its cable, port and RDMA "
           "driver";
  if (check_id == "gdr.pair")
    return "when rdma.pair is good, the path between NIC and GPU is the fault: gpu.affinity, "
           "system.acs, nvidia-peermem or the open driver's DMA-BUF; perftest must be built with "
           "CUDA";
  if (check_id == kBmcLogCheck)
    return "the entries' own words say which part; `muster bmc show` has the whole log. When "
           "nothing "
           "is to be repaired, run the gate again";
  if (check_id == kBmcPowerCheck)
    return "reseat or replace the power supply that is named, check its lead and its PDU's "
           "breaker; "
           "a machine that has empty places by design: bmc.power: {supplies: N} in the gate";
  if (check_id == kPeerBaselineCheck)
    return "compare it with a node of its kind: power limit, clocks, heat, PCIe width; when all of "
           "them are that slow, the fleet's own baseline is wrong";
  if (check_id == kBitsCheck)
    return "repeat the gate; the same GPU again: long burn-in and RMA, its arithmetic is wrong "
           "below what other checks can see";
  const auto* row = findCheck(check_id);
  return row ? row->advice : "update the agent on the node";
}

}  // namespace muster::validate
