#include "validate/gates.h"

#include "validate/checks/catalogue.h"

#include <algorithm>
#include <array>

namespace muster::validate {
namespace {

using inventory::GateLevel;
using std::chrono::seconds;

/// What the levels mean for the host engines and for time.
struct LevelRow {
  GateLevel level;
  int gemm_n;
  double gemm_seconds;
  int memory_mebibytes;  ///< or, when 0:
  int memory_percent;
  double memory_seconds;
  seconds expected, deadline;
};
constexpr std::array kLevels{
    LevelRow{GateLevel::Quick, 128, 3, 32, 0, 50, seconds(15), seconds(300)},
    LevelRow{GateLevel::Medium, 512, 120, 0, 25, 420, seconds(600), seconds(1800)},
    LevelRow{GateLevel::Long, 1024, 3000, 0, 80, 3600, seconds(6600), seconds(9000)},
};

const LevelRow& rowOf(GateLevel level) {
  return *std::find_if(kLevels.begin(), kLevels.end(), [level](const auto& row) { return row.level == level; });
}

/// Floors for ib_write_bw in Gb/s. Soft-RoCE has none worth the name: it proves that packets and the stack work.
struct FloorRow {
  std::string_view device_prefix, speed;
  double gbits;
  std::string_view source;
};
constexpr std::array kFloors{
    FloorRow{"rxe", "", 0.001, "works at all: soft-RoCE is bound by the CPU"},
    FloorRow{"mlx5", "NDR", 360, "sichek, 400 Gb/s rails"},
    FloorRow{"mlx5", "HDR", 180, "Azure node health checks, 200 Gb/s rails"},
    FloorRow{"mlx5", "EDR", 90, "0.9 of 100 Gb/s"},
    FloorRow{"mlx5", "FDR", 48, "0.9 of 54 Gb/s"},
};

bool has(const inventory::Gate& gate, std::string_view group) { return std::find(gate.on.begin(), gate.on.end(), group) != gate.on.end(); }

void addHost(const LevelRow& level, std::vector<CheckRequest>& checks) {
  const nlohmann::json gemm{{"n", level.gemm_n}, {"seconds", level.gemm_seconds}};
  nlohmann::json memory{{"seconds", level.memory_seconds}};
  if (level.memory_mebibytes) memory["mebibytes"] = level.memory_mebibytes;
  if (level.memory_percent) memory["percent_of_available"] = level.memory_percent;
  checks.push_back({"host.gemm", gemm.dump(), level.deadline});
  checks.push_back({"host.memory", memory.dump(), level.deadline});
}

void addGpu(const inventory::Cluster& cluster, const inventory::Profile& profile, const LevelRow& level, std::vector<CheckRequest>& checks) {
  const auto add = [&](std::string id, nlohmann::json params) { checks.push_back({std::move(id), params.dump(), level.deadline}); };
  if (profile.expect.gpus) add("gpu.count", {{"count", *profile.expect.gpus}});
  if (!profile.expect.gpu_model.empty()) add("gpu.model", {{"model", profile.expect.gpu_model}});
  for (const auto& name : profile.drivers) {
    const auto& verify = cluster.drivers.at(name).verify;
    if (const auto driver = verify.find("nvml.driver"); driver != verify.end()) add("gpu.driver", {{"driver", driver->second}});
  }
  for (const char* id : {"gpu.ecc", "gpu.remap", "gpu.throttle"}) add(id, nlohmann::json::object());
}

void addRdma(const inventory::Profile& profile, const LevelRow& level, std::vector<CheckRequest>& checks) {
  if (profile.expect.nics) checks.push_back({"rdma.count", nlohmann::json{{"count", *profile.expect.nics}}.dump(), level.deadline});
}

}  // namespace

Result<std::vector<CheckRequest>> localChecks(const inventory::Cluster& cluster, const inventory::Profile& profile, const inventory::Gate& gate) {
  std::vector<CheckRequest> checks;
  const auto& level = rowOf(gate.level);
  for (const auto& group : gate.on) {
    if (group == "host")
      addHost(level, checks);
    else if (group == "gpu")
      addGpu(cluster, profile, level, checks);
    else if (group == "rdma")
      addRdma(profile, level, checks);
    else
      return fail(ErrorCode::InvalidInput, fmt::format("gate {} asks for checks on '{}'; there are host, gpu and rdma", gate.name, group));
  }
  return checks;
}

bool wantsRdmaPair(const inventory::Gate& gate) { return has(gate, "rdma"); }

double rdmaFloorGbits(std::string_view device, std::string_view link) {
  for (const auto& row : kFloors)
    if (device.starts_with(row.device_prefix) && link.ends_with(row.speed)) return row.gbits;
  return 1;  // an unknown device still has to move data
}

seconds gateExpected(const inventory::Gate& gate) { return rowOf(gate.level).expected; }
seconds gateDeadline(const inventory::Gate& gate) { return rowOf(gate.level).deadline; }

std::string_view adviceFor(std::string_view check_id) {
  if (check_id == "rdma.pair") return "repeat with another partner; if it follows this node check its cable, port and RDMA driver";
  const auto* row = findCheck(check_id);
  return row ? row->advice : "update the agent on the node";
}

}  // namespace muster::validate
