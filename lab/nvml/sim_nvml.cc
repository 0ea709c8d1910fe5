// SPDX-License-Identifier: Apache-2.0
// libnvidia-ml.so.1, simulated: NVML's ABI over the GPUs that a JSON file describes (see README.md
// beside this file).
//
// The driver's version is part of the library, as it is part of the real one: the package builder
// writes it into kVersionSlot. No exception leaves a function; nothing is read between nvmlInit and
// nvmlShutdown, as callers expect of a driver.
#include "lab/nvml/abi.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#define NVML_API extern "C" __attribute__((visibility("default")))

namespace {

using nlohmann::json;

/// Marker, then the version up to a zero byte. `volatile` keeps the compiler from reading it at
/// compile time.
__attribute__((used)) const volatile char kVersionSlot[96] = "MUSTER-SIM-NVML-DRIVER-VERSION:0.0.0";
constexpr std::size_t kMarkerBytes = sizeof("MUSTER-SIM-NVML-DRIVER-VERSION:") - 1;

constexpr const char* kConfigFile = "/etc/muster/sim-nvml.json";
constexpr unsigned kCudaVersion = 12080;

}  // namespace

struct nvmlDevice_st {
  std::string name, uuid, serial, vbios, bus_id;
  unsigned long long memory_bytes = 0, used_bytes = 0;
  unsigned long long ecc[2][2] = {};  // [type][counter]
  unsigned remapped_correctable = 0, remapped_uncorrectable = 0;
  bool remap_pending = false, remap_failed = false;
  unsigned long long throttle_reasons = 0;
  std::map<int, unsigned long long> violation_ns;
  unsigned temperature_c = 0, power_mw = 0, power_limit_mw = 0, sm_mhz = 0, memory_mhz = 0;
  unsigned nvlinks = 0, nvlinks_down = 0;
  unsigned long long nvlink_errors = 0;
  std::map<std::pair<unsigned, unsigned>, unsigned> nvlink_ber;  // field, link: as NVML packs it
  bool has_nvlink_ber = true;
  unsigned pcie_generation = 5, pcie_max_generation = 5, pcie_width = 16, pcie_max_width = 16,
           pcie_replays = 0;
  unsigned power_default_mw = 0, slowdown_c = 87;
  unsigned char fabric_state = 0;  // not supported
  int fabric_status = 0;
  std::string cluster_uuid;  // hex
  unsigned clique = 0, fabric_health = 0;
  bool is_nvlink5 = false;  // has other counters
  bool inforom_valid = true;
  bool ecc_enabled = true, lost = false;
};

namespace {

struct Library {
  std::mutex mutex;
  int users = 0;
  std::vector<nvmlDevice_st> gpus;
};

/// Never destroyed: callers may use NVML from their own exit handlers.
Library& library() {
  static auto* only = new Library;
  return *only;
}

std::string driverVersion() {
  std::string version;
  for (std::size_t i = kMarkerBytes; i < sizeof kVersionSlot && kVersionSlot[i]; ++i)
    version += kVersionSlot[i];
  return version;
}

unsigned packedBer(const json& mantissa_and_exponent) {
  return (mantissa_and_exponent.at(0).get<unsigned>() & NVML_NVLINK_BER_MANTISSA_WIDTH)
             << NVML_NVLINK_BER_MANTISSA_SHIFT |
         (mantissa_and_exponent.at(1).get<unsigned>() & NVML_NVLINK_BER_EXP_WIDTH)
             << NVML_NVLINK_BER_EXP_SHIFT;
}

/// {"5": {"effective": [2, 9]}}: on link 5 an effective rate of 2e-9.
void readBitErrorRates(const json& links, nvmlDevice_st& gpu) {
  for (const auto& [link, rates] : links.items()) {
    const auto number = static_cast<unsigned>(std::stoul(link));
    if (rates.contains("effective"))
      gpu.nvlink_ber[{NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER, number}] =
          packedBer(rates.at("effective"));
    if (rates.contains("symbol"))
      gpu.nvlink_ber[{NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER, number}] = packedBer(rates.at("symbol"));
  }
}

nvmlDevice_st gpuFrom(const json& entry) {
  nvmlDevice_st gpu;
  gpu.name = entry.value("name", "NVIDIA H100 80GB HBM3");
  gpu.uuid = entry.value("uuid", "");
  gpu.serial = entry.value("serial", "");
  gpu.vbios = entry.value("vbios", "96.00.89.00.01");
  gpu.bus_id = entry.value("bus_id", "00000000:00:00.0");
  gpu.memory_bytes = entry.value("memory_mib", 81559ull) << 20;
  gpu.used_bytes = entry.value("used_mib", 0ull) << 20;
  auto ecc = entry.value("ecc", json::object());
  gpu.ecc[NVML_MEMORY_ERROR_TYPE_CORRECTED][NVML_VOLATILE_ECC] =
      ecc.value("corrected_volatile", 0ull);
  gpu.ecc[NVML_MEMORY_ERROR_TYPE_UNCORRECTED][NVML_VOLATILE_ECC] =
      ecc.value("uncorrected_volatile", 0ull);
  gpu.ecc[NVML_MEMORY_ERROR_TYPE_CORRECTED][NVML_AGGREGATE_ECC] =
      ecc.value("corrected_aggregate", 0ull);
  gpu.ecc[NVML_MEMORY_ERROR_TYPE_UNCORRECTED][NVML_AGGREGATE_ECC] =
      ecc.value("uncorrected_aggregate", 0ull);
  gpu.ecc_enabled = ecc.value("enabled", true);
  auto rows = entry.value("remapped_rows", json::object());
  gpu.remapped_correctable = rows.value("correctable", 0u);
  gpu.remapped_uncorrectable = rows.value("uncorrectable", 0u);
  gpu.remap_pending = rows.value("pending", false);
  gpu.remap_failed = rows.value("failed", false);
  gpu.throttle_reasons = entry.value("throttle_reasons", 0ull);
  auto violations = entry.value("violation_ns", json::object());
  gpu.violation_ns[NVML_PERF_POLICY_POWER] = violations.value("power", 0ull);
  gpu.violation_ns[NVML_PERF_POLICY_THERMAL] = violations.value("thermal", 0ull);
  gpu.violation_ns[NVML_PERF_POLICY_SYNC_BOOST] = violations.value("sync_boost", 0ull);
  gpu.violation_ns[NVML_PERF_POLICY_RELIABILITY] = violations.value("reliability", 0ull);
  gpu.temperature_c = entry.value("temperature_c", 34u);
  gpu.power_mw = entry.value("power_w", 71u) * 1000;
  gpu.power_limit_mw = entry.value("power_limit_w", 700u) * 1000;
  gpu.sm_mhz = entry.value("sm_mhz", 1980u);
  gpu.memory_mhz = entry.value("memory_mhz", 2619u);
  gpu.nvlinks = entry.value("nvlinks", NVML_NVLINK_MAX_LINKS);
  gpu.nvlinks_down = entry.value("nvlinks_down", 0u);
  gpu.nvlink_errors = entry.value("nvlink_errors", 0ull);
  readBitErrorRates(entry.value("nvlink_ber", json::object()), gpu);
  gpu.has_nvlink_ber = entry.value("has_nvlink_ber", true);
  auto pcie = entry.value("pcie", json::object());
  gpu.pcie_generation = pcie.value("generation", 5u),
  gpu.pcie_max_generation = pcie.value("max_generation", 5u);
  gpu.pcie_width = pcie.value("width", 16u), gpu.pcie_max_width = pcie.value("max_width", 16u);
  gpu.pcie_replays = pcie.value("replays", 0u);
  gpu.power_default_mw = entry.value("power_default_w", gpu.power_limit_mw / 1000) * 1000;
  gpu.slowdown_c = entry.value("slowdown_c", 87u);
  gpu.fabric_state = static_cast<unsigned char>(entry.value("fabric_state", 0u));
  gpu.fabric_status = entry.value("fabric_status", 0);
  gpu.cluster_uuid = entry.value("cluster_uuid", "");
  gpu.clique = entry.value("clique", 0u), gpu.fabric_health = entry.value("fabric_health", 0u);
  gpu.is_nvlink5 = entry.value("nvlink_generation", 4u) >= 5;
  gpu.inforom_valid = entry.value("inforom_valid", true);
  gpu.lost = entry.value("lost", false);
  return gpu;
}

nvmlReturn_t readConfig(std::vector<nvmlDevice_st>& gpus) {
  auto* named = std::getenv("MUSTER_SIM_NVML_CONFIG");
  std::ifstream file(named && *named ? named : kConfigFile);
  if (!file) return NVML_ERROR_DRIVER_NOT_LOADED;
  auto root = json::parse(file, nullptr, false);
  if (!root.is_object()) return NVML_ERROR_UNKNOWN;
  if (root.value("driver_not_loaded", false)) return NVML_ERROR_DRIVER_NOT_LOADED;
  gpus.clear();
  for (const auto& entry : root.value("gpus", json::array())) gpus.push_back(gpuFrom(entry));
  return NVML_SUCCESS;
}

nvmlReturn_t initialize() {
  auto& nvml = library();
  std::lock_guard lock(nvml.mutex);
  if (nvml.users > 0) return ++nvml.users, NVML_SUCCESS;
  try {
    if (auto read = readConfig(nvml.gpus); read != NVML_SUCCESS) return read;
  } catch (const std::exception&) {
    return NVML_ERROR_UNKNOWN;
  }
  nvml.users = 1;
  return NVML_SUCCESS;
}

nvmlReturn_t ready() { return library().users > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED; }

/// Is this a handle that the library gave out, of a GPU that still answers?
nvmlReturn_t usable(nvmlDevice_t device) {
  auto& nvml = library();
  if (nvml.users == 0) return NVML_ERROR_UNINITIALIZED;
  if (nvml.gpus.empty() || device < nvml.gpus.data() ||
      device >= nvml.gpus.data() + nvml.gpus.size())
    return NVML_ERROR_INVALID_ARGUMENT;
  return device->lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t copyText(const std::string& text, char* out, unsigned length) {
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  if (text.size() + 1 > length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return NVML_SUCCESS;
}

template <class T>
nvmlReturn_t answer(nvmlDevice_t device, T* out, T nvmlDevice_st::* field) {
  if (auto bad = usable(device)) return bad;
  if (!out) return NVML_ERROR_INVALID_ARGUMENT;
  *out = device->*field;
  return NVML_SUCCESS;
}

nvmlReturn_t answerText(nvmlDevice_t device, char* out, unsigned length,
                        std::string nvmlDevice_st::* field) {
  if (auto bad = usable(device)) return bad;
  if ((device->*field).empty()) return NVML_ERROR_NOT_SUPPORTED;
  return copyText(device->*field, out, length);
}

}  // namespace

NVML_API nvmlReturn_t nvmlInit_v2() { return initialize(); }
NVML_API nvmlReturn_t nvmlInit() { return initialize(); }
NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned) { return initialize(); }

NVML_API nvmlReturn_t nvmlShutdown() {
  auto& nvml = library();
  std::lock_guard lock(nvml.mutex);
  if (nvml.users == 0) return NVML_ERROR_UNINITIALIZED;
  --nvml.users;
  return NVML_SUCCESS;
}

NVML_API const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT:
      return "Timeout";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_RESET_REQUIRED:
      return "GPU requires restart";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "RM detects a driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  if (auto bad = ready()) return bad;
  return copyText(driverVersion(), version, length);
}
NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  auto driver = driverVersion();
  return copyText("12." + driver, version, length);
}
NVML_API nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int* version) {
  if (!version) return NVML_ERROR_INVALID_ARGUMENT;
  *version = kCudaVersion;
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  if (auto bad = ready()) return bad;
  if (!count) return NVML_ERROR_INVALID_ARGUMENT;
  *count = static_cast<unsigned>(library().gpus.size());
  return NVML_SUCCESS;
}
NVML_API nvmlReturn_t nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (auto bad = ready()) return bad;
  auto& gpus = library().gpus;
  if (!device || index >= gpus.size()) return NVML_ERROR_INVALID_ARGUMENT;
  if (gpus[index].lost) return NVML_ERROR_GPU_IS_LOST;
  *device = &gpus[index];
  return NVML_SUCCESS;
}
NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

NVML_API nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* device) {
  if (auto bad = ready()) return bad;
  if (!uuid || !device) return NVML_ERROR_INVALID_ARGUMENT;
  for (auto& gpu : library().gpus)
    if (gpu.uuid == uuid) return *device = &gpu, gpu.lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
  return NVML_ERROR_NOT_FOUND;
}

NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  if (auto bad = usable(device)) return bad;
  if (!index) return NVML_ERROR_INVALID_ARGUMENT;
  *index = static_cast<unsigned>(device - library().gpus.data());
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  return answerText(device, name, length, &nvmlDevice_st::name);
}
NVML_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  return answerText(device, uuid, length, &nvmlDevice_st::uuid);
}
NVML_API nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char* serial, unsigned length) {
  return answerText(device, serial, length, &nvmlDevice_st::serial);
}
NVML_API nvmlReturn_t nvmlDeviceGetVbiosVersion(nvmlDevice_t device, char* version,
                                                unsigned length) {
  return answerText(device, version, length, &nvmlDevice_st::vbios);
}

NVML_API nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t* pci) {
  if (auto bad = usable(device)) return bad;
  if (!pci) return NVML_ERROR_INVALID_ARGUMENT;
  *pci = {};
  std::snprintf(pci->busId, sizeof pci->busId, "%s", device->bus_id.c_str());
  std::sscanf(device->bus_id.c_str(), "%x:%x:%x", &pci->domain, &pci->bus, &pci->device);
  std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0",
                pci->domain & 0xffffu, pci->bus & 0xffu, pci->device & 0x1fu);
  pci->pciDeviceId = 0x233010de;  // H100 SXM5
  pci->pciSubSystemId = 0x16c110de;
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (auto bad = usable(device)) return bad;
  if (!memory) return NVML_ERROR_INVALID_ARGUMENT;
  *memory = {device->memory_bytes, device->memory_bytes - device->used_bytes, device->used_bytes};
  return NVML_SUCCESS;
}
NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device,
                                                    nvmlUtilization_t* utilization) {
  if (auto bad = usable(device)) return bad;
  if (!utilization) return NVML_ERROR_INVALID_ARGUMENT;
  *utilization = {0, 0};
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetEccMode(nvmlDevice_t device, int* current, int* pending) {
  if (auto bad = usable(device)) return bad;
  if (!current || !pending) return NVML_ERROR_INVALID_ARGUMENT;
  *current = *pending = device->ecc_enabled ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
NVML_API nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, int type, int counter,
                                                  unsigned long long* count) {
  if (auto bad = usable(device)) return bad;
  if (!count || type < 0 || type > 1 || counter < 0 || counter > 1)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (!device->ecc_enabled) return NVML_ERROR_NOT_SUPPORTED;
  *count = device->ecc[type][counter];
  return NVML_SUCCESS;
}
NVML_API nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* correctable,
                                                unsigned* uncorrectable, unsigned* pending,
                                                unsigned* failed) {
  if (auto bad = usable(device)) return bad;
  if (!correctable || !uncorrectable || !pending || !failed) return NVML_ERROR_INVALID_ARGUMENT;
  *correctable = device->remapped_correctable;
  *uncorrectable = device->remapped_uncorrectable;
  *pending = device->remap_pending;
  *failed = device->remap_failed;
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                                unsigned long long* reasons) {
  return answer(device, reasons, &nvmlDevice_st::throttle_reasons);
}
NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                             unsigned long long* reasons) {
  return answer(device, reasons, &nvmlDevice_st::throttle_reasons);
}
NVML_API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, int policy,
                                                   nvmlViolationTime_t* time) {
  if (auto bad = usable(device)) return bad;
  if (!time) return NVML_ERROR_INVALID_ARGUMENT;
  auto found = device->violation_ns.find(policy);
  if (found == device->violation_ns.end()) return NVML_ERROR_NOT_SUPPORTED;
  auto now = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  *time = {static_cast<unsigned long long>(now.count()), found->second};
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned* celsius) {
  if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
  return answer(device, celsius, &nvmlDevice_st::temperature_c);
}
NVML_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* milliwatts) {
  return answer(device, milliwatts, &nvmlDevice_st::power_mw);
}
NVML_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return answer(device, milliwatts, &nvmlDevice_st::power_limit_mw);
}
NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned* milliwatts) {
  return answer(device, milliwatts, &nvmlDevice_st::power_limit_mw);
}
NVML_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int clock, unsigned* mhz) {
  if (clock < NVML_CLOCK_GRAPHICS || clock > NVML_CLOCK_VIDEO) return NVML_ERROR_INVALID_ARGUMENT;
  return answer(device, mhz,
                clock == NVML_CLOCK_MEM ? &nvmlDevice_st::memory_mhz : &nvmlDevice_st::sm_mhz);
}
NVML_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int clock, unsigned* mhz) {
  return nvmlDeviceGetClockInfo(device, clock, mhz);
}
NVML_API nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, int* active) {
  if (auto bad = usable(device)) return bad;
  if (!active || link >= device->nvlinks) return NVML_ERROR_INVALID_ARGUMENT;
  *active =
      link < device->nvlinks - device->nvlinks_down ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
  return NVML_SUCCESS;
}
NVML_API nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, unsigned link,
                                                      int counter, unsigned long long* count) {
  if (auto bad = usable(device)) return bad;
  if (!count || link >= device->nvlinks || counter < 0 || counter > 3)
    return NVML_ERROR_INVALID_ARGUMENT;
  if (device->is_nvlink5) return NVML_ERROR_NOT_SUPPORTED;
  *count = link == 0 && counter == 0 ? device->nvlink_errors : 0;
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned* count) {
  return answer(device, count, &nvmlDevice_st::pcie_replays);
}
NVML_API nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* value) {
  return answer(device, value, &nvmlDevice_st::pcie_generation);
}
NVML_API nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned* value) {
  return answer(device, value, &nvmlDevice_st::pcie_max_generation);
}
NVML_API nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* value) {
  return answer(device, value, &nvmlDevice_st::pcie_width);
}
NVML_API nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned* value) {
  return answer(device, value, &nvmlDevice_st::pcie_max_width);
}
NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device,
                                                               unsigned* milliwatts) {
  return answer(device, milliwatts, &nvmlDevice_st::power_default_mw);
}
NVML_API nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, int,
                                                        unsigned* celsius) {
  return answer(device, celsius, &nvmlDevice_st::slowdown_c);
}
NVML_API nvmlReturn_t nvmlDeviceValidateInforom(nvmlDevice_t device) {
  if (auto bad = usable(device)) return bad;
  return device->inforom_valid ? NVML_SUCCESS : NVML_ERROR_CORRUPTED_INFOROM;
}
namespace {

/// "0a1b…" → 16 bytes; what is missing is 0.
void putUuid(const std::string& hex, unsigned char (&bytes)[16]) {
  for (std::size_t i = 0; i < sizeof bytes; ++i)
    bytes[i] =
        2 * i + 1 < hex.size()
            ? static_cast<unsigned char>(std::strtoul(hex.substr(2 * i, 2).c_str(), nullptr, 16))
            : 0;
}

}  // namespace

NVML_API nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, nvmlGpuFabricInfoV_t* info) {
  if (auto bad = usable(device)) return bad;
  if (!info || info->version != NVML_GPU_FABRIC_INFO_V2) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  info->version = NVML_GPU_FABRIC_INFO_V2;
  putUuid(device->cluster_uuid, info->clusterUuid);
  info->status = device->fabric_status, info->state = device->fabric_state;
  info->cliqueId = device->clique, info->healthMask = device->fabric_health;
  return NVML_SUCCESS;
}

namespace {

constexpr unsigned kAllLinks = ~0u, kNoBitErrors = 0xfff;

bool isBer(unsigned field) {
  return field == NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER ||
         field == NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER;
}

unsigned long long linkValue(const nvmlDevice_st& gpu, unsigned field, unsigned scope) {
  if (isBer(field)) {
    const auto found = gpu.nvlink_ber.find({field, scope});
    return found == gpu.nvlink_ber.end() ? kNoBitErrors : found->second;
  }
  const bool of_first = scope == 0 || scope == kAllLinks;
  return field == NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS && of_first ? gpu.nvlink_errors : 0;
}

}  // namespace

NVML_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count,
                                               nvmlFieldValue_t* values) {
  if (auto bad = usable(device)) return bad;
  if (!values || count < 1) return NVML_ERROR_INVALID_ARGUMENT;
  for (int i = 0; i < count; ++i) {
    auto& asked = values[i];
    const bool known = asked.fieldId >= NVML_FI_DEV_NVLINK_COUNT_FIRST &&
                       asked.fieldId <= NVML_FI_DEV_NVLINK_COUNT_LAST && device->is_nvlink5 &&
                       (device->has_nvlink_ber || !isBer(asked.fieldId));
    const bool is_link = asked.scopeId < device->nvlinks || asked.scopeId == kAllLinks;
    asked.nvmlReturn = !known     ? NVML_ERROR_NOT_SUPPORTED
                       : !is_link ? NVML_ERROR_INVALID_ARGUMENT
                                  : NVML_SUCCESS;
    asked.valueType = NVML_VALUE_TYPE_UNSIGNED_LONG_LONG;
    asked.value.ullVal = linkValue(*device, asked.fieldId, asked.scopeId);
  }
  return NVML_SUCCESS;
}

NVML_API nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, nvmlGpuFabricInfo_t* info) {
  if (auto bad = usable(device)) return bad;
  if (!info) return NVML_ERROR_INVALID_ARGUMENT;
  *info = {};
  putUuid(device->cluster_uuid, info->clusterUuid);
  info->cliqueId = device->clique;
  info->status = device->fabric_status, info->state = device->fabric_state;
  return NVML_SUCCESS;
}
