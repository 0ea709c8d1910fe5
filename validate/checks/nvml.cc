// SPDX-License-Identifier: Apache-2.0
// Source of names, layouts and numbers: NVIDIA's public NVML API reference (nvml.h of the R535
// driver and later).
#include "validate/checks/nvml.h"

#include "validate/checks/checks.h"

#include <dlfcn.h>

#include <array>
#include <cmath>
#include <cstdlib>

namespace muster::validate {
namespace {

constexpr int kSuccess = 0;
constexpr int kNotSupported = 3;
constexpr int kInsufficientSize = 7;
constexpr std::size_t kTextBytes = 96;
constexpr unsigned kMaxGpus = 64;
constexpr unsigned kMaxNvLinks = 18;
constexpr int kMemoryErrorCorrected = 0, kMemoryErrorUncorrected = 1;
constexpr int kVolatileEcc = 0, kAggregateEcc = 1;
constexpr int kTemperatureGpu = 0;
constexpr int kViolationPower = 0, kViolationThermal = 1, kViolationBoard = 3,
              kViolationReliability = 5;  // 4 is low utilisation: no fault
constexpr int kThresholdSlowdown = 1;
constexpr int kClockSm = 1, kClockMemory = 2;
constexpr int kNvLinkErrorCounters = 4;  ///< replay, recovery, CRC of flits, CRC of data
constexpr int kPageSingleBit = 0, kPageDoubleBit = 1;
constexpr int kCorruptedInforom = 14;

using Device = struct OpaqueDevice*;

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68);

struct MemoryInfo {
  unsigned long long total, free, used;
};
struct FabricInfo {
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique;
  unsigned char state;
};

/// Of this layout and its version, in one word.
struct FabricInfoV2 {
  unsigned version;
  unsigned char cluster_uuid[16];
  int status;
  unsigned clique;
  unsigned char state;
  unsigned health_mask;
};
constexpr unsigned kFabricInfoV2 = sizeof(FabricInfoV2) | 2u << 24;

/// One of many values that are asked for by number. `scope`: a link, or all of them together.
struct FieldValue {
  unsigned field, scope;
  long long timestamp, latency;
  int type, code;
  union {
    double real;
    unsigned long long whole;
  };
};
static_assert(sizeof(FieldValue) == 40);
constexpr unsigned kAllLinks = ~0u;
constexpr int kTypeUnsigned = 1, kTypeSigned = 5;  // 32 bits; of 64 are 2, 3 and 4
/// Of NVLink 5, which has no other counters: malformed packets, overruns, receive errors (own,
/// remote, general), bursts, recoveries however they ended, errors after FEC. A B300 in good health
/// shows 0 for each; DCGM 4.6 watches the same.
constexpr std::array kNvLink5Errors = {206u, 207u, 208u, 209u, 210u, 211u, 215u, 219u};
constexpr unsigned kEffectiveBer = 220, kSymbolBer = 222;  ///< of NVLink 5, too
/// A rate is mantissa × 10^−exponent, in four and eight bits (NVML_NVLINK_BER_…). Without any
/// error a link says 15·10^−255, several together 15·10^−238 (DCGM 4.6).
constexpr unsigned kBerBits = 12, kBerExponent = 0xff, kNoErrorExponent = 238;

struct ViolationTime {
  unsigned long long reference_time, violation_time;
};

}  // namespace

struct Nvml::Library {
  void* handle = nullptr;
  bool initialised = false;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  const char* (*error_string)(int) = nullptr;
  int (*driver_version)(char*, unsigned) = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*by_index)(unsigned, Device*) = nullptr;
  int (*name)(Device, char*, unsigned) = nullptr;
  int (*uuid)(Device, char*, unsigned) = nullptr;
  int (*serial)(Device, char*, unsigned) = nullptr;
  int (*vbios)(Device, char*, unsigned) = nullptr;
  int (*pci)(Device, PciInfo*) = nullptr;
  int (*ecc_mode)(Device, int*, int*) = nullptr;
  int (*ecc_errors)(Device, int, int, unsigned long long*) = nullptr;
  int (*remapped)(Device, unsigned*, unsigned*, unsigned*, unsigned*) = nullptr;
  int (*throttle)(Device, unsigned long long*) = nullptr;
  int (*violation)(Device, int, ViolationTime*) = nullptr;
  int (*temperature)(Device, int, unsigned*) = nullptr;
  int (*power)(Device, unsigned*) = nullptr;
  // A library without these is good enough: what they would say is no data, which no check takes
  // for good.
  using Number = int (*)(Device, unsigned*);
  using Numbered = int (*)(Device, int, unsigned*);
  int (*nvlink_state)(Device, unsigned, int*) = nullptr;
  int (*nvlink_errors)(Device, unsigned, int, unsigned long long*) = nullptr;
  Number pcie_replays = nullptr, pcie_generation = nullptr, pcie_max_generation = nullptr,
         pcie_width = nullptr, pcie_max_width = nullptr;
  Number power_limit = nullptr, power_default = nullptr;
  Numbered clock = nullptr, max_clock = nullptr, threshold = nullptr;
  int (*cuda_version)(int*) = nullptr;
  int (*memory)(Device, MemoryInfo*) = nullptr;
  int (*inforom)(Device) = nullptr;
  int (*fabric)(Device, FabricInfo*) = nullptr;
  int (*fabric_v)(Device, FabricInfoV2*) = nullptr;
  int (*fields)(Device, int, FieldValue*) = nullptr;
  int (*retired_pending)(Device, int*) = nullptr;
  int (*retired)(Device, int, unsigned*, unsigned long long*) = nullptr;

  ~Library() {
    if (initialised) shutdown();
    if (handle) dlclose(handle);
  }

  template <class F>
  bool load(F& function, const char* symbol) {
    function = reinterpret_cast<F>(dlsym(handle, symbol));
    return function != nullptr;
  }

  /// The first symbol that is missing, or nullptr.
  const char* loadAll() {
    const auto need = [this](auto& function, const char* symbol) {
      return load(function, symbol) ? nullptr : symbol;
    };
    for (const char* missing :
         {need(init, "nvmlInit_v2"), need(shutdown, "nvmlShutdown"),
          need(error_string, "nvmlErrorString"), need(driver_version, "nvmlSystemGetDriverVersion"),
          need(count, "nvmlDeviceGetCount_v2"), need(by_index, "nvmlDeviceGetHandleByIndex_v2"),
          need(name, "nvmlDeviceGetName"), need(uuid, "nvmlDeviceGetUUID"),
          need(serial, "nvmlDeviceGetSerial"), need(vbios, "nvmlDeviceGetVbiosVersion"),
          need(pci, "nvmlDeviceGetPciInfo_v3"), need(ecc_mode, "nvmlDeviceGetEccMode"),
          need(ecc_errors, "nvmlDeviceGetTotalEccErrors"),
          need(remapped, "nvmlDeviceGetRemappedRows"),
          need(throttle, "nvmlDeviceGetCurrentClocksThrottleReasons"),
          need(violation, "nvmlDeviceGetViolationStatus"),
          need(temperature, "nvmlDeviceGetTemperature"), need(power, "nvmlDeviceGetPowerUsage")})
      if (missing) return missing;
    load(nvlink_state, "nvmlDeviceGetNvLinkState"),
        load(nvlink_errors, "nvmlDeviceGetNvLinkErrorCounter");
    load(pcie_replays, "nvmlDeviceGetPcieReplayCounter");
    load(pcie_generation, "nvmlDeviceGetCurrPcieLinkGeneration"),
        load(pcie_max_generation, "nvmlDeviceGetMaxPcieLinkGeneration");
    load(pcie_width, "nvmlDeviceGetCurrPcieLinkWidth"),
        load(pcie_max_width, "nvmlDeviceGetMaxPcieLinkWidth");
    load(power_limit, "nvmlDeviceGetEnforcedPowerLimit"),
        load(power_default, "nvmlDeviceGetPowerManagementDefaultLimit");
    load(clock, "nvmlDeviceGetClockInfo"), load(max_clock, "nvmlDeviceGetMaxClockInfo"),
        load(threshold, "nvmlDeviceGetTemperatureThreshold");
    load(cuda_version, "nvmlSystemGetCudaDriverVersion_v2"),
        load(memory, "nvmlDeviceGetMemoryInfo");
    load(inforom, "nvmlDeviceValidateInforom"), load(fabric, "nvmlDeviceGetGpuFabricInfo");
    load(fabric_v, "nvmlDeviceGetGpuFabricInfoV"), load(fields, "nvmlDeviceGetFieldValues");
    load(retired_pending, "nvmlDeviceGetRetiredPagesPendingStatus"),
        load(retired, "nvmlDeviceGetRetiredPages");
    return nullptr;
  }

  void lookAtLinks(Device device, GpuHealth& gpu) const {
    if (!nvlink_state) return;
    unsigned up = 0, down = 0;
    std::optional<std::uint64_t> errors;
    for (unsigned link = 0; link < kMaxNvLinks; ++link) {
      int active = 0;
      if (nvlink_state(device, link, &active) != kSuccess) continue;
      ++(active ? up : down);
      unsigned long long count = 0;
      for (int counter = 0; nvlink_errors && counter < kNvLinkErrorCounters; ++counter)
        if (nvlink_errors(device, link, counter, &count) == kSuccess)
          errors = errors.value_or(0) + count;
    }
    gpu.nvlinks_up = up;
    gpu.nvlinks_down = up > 0 ? down : 0;
    gpu.nvlink_counts_crc = errors.has_value();
    gpu.nvlink_errors = errors ? errors : up > 0 ? nvLink5Errors(device) : std::nullopt;
  }

  static std::optional<std::uint64_t> wholeOf(const FieldValue& value) {
    if (value.code != kSuccess || value.type == 0) return std::nullopt;
    const bool is_short = value.type == kTypeUnsigned || value.type == kTypeSigned;
    return is_short ? value.whole & 0xffffffffu : value.whole;
  }

  /// A mantissa of 0 is no rate: the driver has not measured.
  static std::optional<double> rateOf(const FieldValue& value) {
    const auto packed = wholeOf(value);
    if (!packed || *packed >> kBerBits != 0) return std::nullopt;
    const auto exponent = static_cast<int>(*packed & kBerExponent);
    const auto mantissa = static_cast<double>(*packed >> 8);
    if (mantissa == 0) return std::nullopt;
    if (exponent >= static_cast<int>(kNoErrorExponent)) return 0;
    return mantissa * std::pow(10.0, -exponent);
  }

  std::vector<NvLinkBer> bitErrorRates(Device device) const {
    std::vector<NvLinkBer> rates;
    for (unsigned link = 0; nvlink_state && link < kMaxNvLinks; ++link) {
      int active = 0;
      if (nvlink_state(device, link, &active) != kSuccess || !active) continue;
      std::array<FieldValue, 2> values{};
      values[0].field = kEffectiveBer, values[1].field = kSymbolBer;
      values[0].scope = values[1].scope = link;
      auto& rate = rates.emplace_back(NvLinkBer{link, std::nullopt, std::nullopt});
      if (fields && fields(device, static_cast<int>(values.size()), values.data()) == kSuccess)
        rate.effective = rateOf(values[0]), rate.symbol = rateOf(values[1]);
    }
    return rates;
  }

  std::optional<std::uint64_t> nvLink5Errors(Device device) const {
    if (!fields) return std::nullopt;
    std::array<FieldValue, kNvLink5Errors.size()> values{};
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i].field = kNvLink5Errors[i], values[i].scope = kAllLinks;
    if (fields(device, static_cast<int>(values.size()), values.data()) != kSuccess)
      return std::nullopt;
    std::optional<std::uint64_t> sum;
    for (const auto& value : values)
      if (const auto count = wholeOf(value)) sum = sum.value_or(0) + *count;
    return sum;
  }

  static std::string hex(const unsigned char (&bytes)[16]) {
    std::string out;
    for (auto byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
  }

  /// The newer call says of what its health consists; both say nothing of a GPU without NVSwitch.
  std::optional<GpuHealth::Fabric> fabricOf(Device device) const {
    FabricInfoV2 more{};
    more.version = kFabricInfoV2;
    if (fabric_v && fabric_v(device, &more) == kSuccess)
      return more.state
                 ? std::optional(GpuHealth::Fabric{more.state, more.status, hex(more.cluster_uuid),
                                                   more.clique, more.health_mask})
                 : std::nullopt;
    FabricInfo info{};
    if (!fabric || fabric(device, &info) != kSuccess || info.state == 0) return std::nullopt;
    return GpuHealth::Fabric{info.state, info.status, hex(info.cluster_uuid), info.clique, 0};
  }

  std::optional<unsigned> ask(Number get, Device device) const {
    unsigned value = 0;
    return get && get(device, &value) == kSuccess ? std::optional(value) : std::nullopt;
  }
  std::optional<unsigned> ask(Numbered get, Device device, int of) const {
    unsigned value = 0;
    return get && get(device, of, &value) == kSuccess ? std::optional(value) : std::nullopt;
  }

  std::optional<GpuHealth::Pcie> pcieOf(Device device) const {
    const auto generation = ask(pcie_generation, device),
               max_generation = ask(pcie_max_generation, device);
    const auto width = ask(pcie_width, device), max_width = ask(pcie_max_width, device);
    if (!generation || !max_generation || !width || !max_width) return std::nullopt;
    return GpuHealth::Pcie{*generation, *max_generation, *width, *max_width};
  }

  std::optional<GpuHealth::RetiredPages> retiredOf(Device device) const {
    int waits = 0;
    unsigned single = 0, twice = 0;
    if (!retired_pending || !retired || retired_pending(device, &waits) != kSuccess)
      return std::nullopt;
    const auto counted = [](int code) {
      return code == kSuccess || code == kInsufficientSize;
    };  // no room for addresses was given
    if (!counted(retired(device, kPageSingleBit, &single, nullptr)) ||
        !counted(retired(device, kPageDoubleBit, &twice, nullptr)))
      return std::nullopt;
    return GpuHealth::RetiredPages{single, twice, waits != 0};
  }

  /// What a library may lack.
  void lookFurther(Device device, GpuHealth& gpu) const {
    lookAtLinks(device, gpu);
    gpu.pcie = pcieOf(device);
    gpu.retired = retiredOf(device);
    gpu.slowdown_c = ask(threshold, device, kThresholdSlowdown);
    gpu.power_limit_mw = ask(power_limit, device),
    gpu.power_default_mw = ask(power_default, device);
    gpu.sm_mhz = ask(clock, device, kClockSm), gpu.sm_max_mhz = ask(max_clock, device, kClockSm);
    gpu.memory_mhz = ask(clock, device, kClockMemory),
    gpu.memory_max_mhz = ask(max_clock, device, kClockMemory);
    if (MemoryInfo info{}; memory && memory(device, &info) == kSuccess)
      gpu.memory_bytes = info.total;
    gpu.fabric = fabricOf(device);
    const int code = inforom ? inforom(device) : kNotSupported;
    if (code == kSuccess || code == kCorruptedInforom) gpu.inforom_valid = code == kSuccess;
  }

  std::unexpected<Error> failed(const char* call, int code) const {
    return fail(ErrorCode::Unavailable,
                fmt::format("{} answered {} ({})", call, code, error_string(code)));
  }

  Result<Device> deviceAt(unsigned index) const {
    Device device = nullptr;
    if (const int code = by_index(index, &device); code != kSuccess)
      return failed(fmt::format("nvmlDeviceGetHandleByIndex_v2({})", index).c_str(), code);
    return device;
  }

  Result<std::string> text(const char* call, int (*get)(Device, char*, unsigned),
                           Device device) const {
    std::array<char, kTextBytes> buffer{};
    const int code = get(device, buffer.data(), static_cast<unsigned>(buffer.size()));
    if (code == kNotSupported) return std::string();
    if (code != kSuccess) return failed(call, code);
    return std::string(buffer.data());
  }

  Result<wire::Gpu> identity(Device device) const {
    TRY(model, text("nvmlDeviceGetName", name, device));
    TRY(id, text("nvmlDeviceGetUUID", uuid, device));
    TRY(serial_number, text("nvmlDeviceGetSerial", serial, device));
    TRY(bios, text("nvmlDeviceGetVbiosVersion", vbios, device));
    PciInfo info{};
    if (const int code = pci(device, &info); code != kSuccess)
      return failed("nvmlDeviceGetPciInfo_v3", code);
    return wire::Gpu{model, id, serial_number, bios, info.bus_id};
  }

  std::optional<std::uint64_t> eccErrors(Device device, int counter,
                                         int type = kMemoryErrorUncorrected) const {
    unsigned long long errors = 0;
    if (ecc_errors(device, type, counter, &errors) != kSuccess) return std::nullopt;
    return errors;
  }

  std::optional<std::uint64_t> heldBack(Device device, int policy) const {
    ViolationTime time{};
    if (violation(device, policy, &time) != kSuccess) return std::nullopt;
    return time.violation_time;
  }

  Result<GpuHealth> health(Device device) const {
    GpuHealth gpu;
    TRY(id, identity(device));
    gpu.identity = id;
    int current = 0, pending_mode = 0;
    if (ecc_mode(device, &current, &pending_mode) == kSuccess) gpu.ecc_enabled = current != 0;
    gpu.ecc_uncorrected_volatile = eccErrors(device, kVolatileEcc);
    gpu.ecc_corrected_volatile = eccErrors(device, kVolatileEcc, kMemoryErrorCorrected);
    gpu.ecc_uncorrected_aggregate = eccErrors(device, kAggregateEcc);
    unsigned correctable = 0, uncorrectable = 0, pending = 0, failure = 0;
    if (remapped(device, &correctable, &uncorrectable, &pending, &failure) == kSuccess)
      gpu.remapped =
          GpuHealth::RemappedRows{correctable, uncorrectable, pending != 0, failure != 0};
    unsigned long long reasons = 0;
    if (throttle(device, &reasons) == kSuccess) gpu.throttle_reasons = reasons;
    gpu.throttle_power_ns = heldBack(device, kViolationPower);
    gpu.throttle_thermal_ns = heldBack(device, kViolationThermal);
    gpu.throttle_board_ns = heldBack(device, kViolationBoard);
    gpu.throttle_reliability_ns = heldBack(device, kViolationReliability);
    lookFurther(device, gpu);
    gpu.pcie_replays = ask(pcie_replays, device);
    unsigned value = 0;
    if (temperature(device, kTemperatureGpu, &value) == kSuccess) gpu.temperature_c = value;
    if (power(device, &value) == kSuccess) gpu.power_mw = value;
    return gpu;
  }
};

std::string fabricTroubleOf(unsigned mask) {
  // Two bits each: 0 not told, 1 yes, 2 no; then four bits of configuration: 0 not told, 1 nothing
  // wrong.
  constexpr std::array<std::string_view, 4> kWords = {
      "reduced bandwidth", "a route is being recovered", "a route is unhealthy",
      "recovering from an access timeout"};
  constexpr std::array<std::string_view, 4> kWrong = {
      "wrong system GUID", "wrong chassis serial number", "no partition", "too few NVLinks"};
  std::string out;
  for (std::size_t i = 0; i < kWords.size(); ++i)
    if ((mask >> 2 * i & 3u) == 1) out += fmt::format("{}{}", out.empty() ? "" : ", ", kWords[i]);
  if (const auto wrong = mask >> 8 & 15u; wrong > 1)
    out += fmt::format("{}{}", out.empty() ? "" : ", ",
                       wrong - 2 < kWrong.size() ? kWrong[wrong - 2] : "configured wrongly");
  return out;
}

Nvml::Nvml(std::unique_ptr<Library> library) : library_(std::move(library)) {}
Nvml::Nvml(Nvml&&) noexcept = default;
Nvml& Nvml::operator=(Nvml&&) noexcept = default;
Nvml::~Nvml() = default;

Result<Nvml> Nvml::open() {
  const char* chosen = std::getenv("MUSTER_NVML");
  const std::string file = chosen ? chosen : "libnvidia-ml.so.1";
  auto library = std::make_unique<Library>();
  library->handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library->handle)
    return fail(ErrorCode::NotFound,
                fmt::format("cannot load {}: {}; is the NVIDIA driver's user-space part installed?",
                            file, dlerror()));
  if (const char* missing = library->loadAll())
    return fail(
        ErrorCode::Corrupt,
        fmt::format("{} has no {}; install a driver of branch 535 or later", file, missing));
  if (const int code = library->init(); code != kSuccess)
    return library->failed("nvmlInit_v2", code);
  library->initialised = true;
  return Nvml(std::move(library));
}

Result<std::string> Nvml::driverVersion() const {
  std::array<char, kTextBytes> buffer{};
  if (const int code =
          library_->driver_version(buffer.data(), static_cast<unsigned>(buffer.size()));
      code != kSuccess)
    return library_->failed("nvmlSystemGetDriverVersion", code);
  return std::string(buffer.data());
}

Result<int> Nvml::cudaVersion() const {
  int version = 0;
  if (!library_->cuda_version)
    return fail(ErrorCode::NotFound, "this NVML does not say which CUDA its driver runs");
  if (const int code = library_->cuda_version(&version); code != kSuccess)
    return library_->failed("nvmlSystemGetCudaDriverVersion_v2", code);
  return version;
}

Result<std::vector<GpuHealth>> Nvml::gpus() const {
  unsigned count = 0;
  if (const int code = library_->count(&count); code != kSuccess)
    return library_->failed("nvmlDeviceGetCount_v2", code);
  if (count > kMaxGpus)
    return fail(ErrorCode::Corrupt,
                fmt::format("NVML counts {} GPUs; more than {} is not believed", count, kMaxGpus));
  std::vector<GpuHealth> gpus;
  for (unsigned index = 0; index < count; ++index) {
    TRY(seen, gpu(index));
    gpus.push_back(std::move(seen));
  }
  return gpus;
}

Result<GpuHealth> Nvml::gpu(unsigned index) const {
  TRY(device, library_->deviceAt(index));
  return library_->health(device);
}

Result<std::vector<NvLinkBer>> Nvml::nvLinkBer(unsigned index) const {
  TRY(device, library_->deviceAt(index));
  return library_->bitErrorRates(device);
}

Result<std::vector<wire::Gpu>> listGpus() {
  TRY(nvml, Nvml::open());
  TRY(gpus, nvml.gpus());
  std::vector<wire::Gpu> out;
  for (const auto& gpu : gpus) out.push_back(gpu.identity);
  return out;
}

Result<std::string> nvmlDriverVersion() {
  TRY(nvml, Nvml::open());
  return nvml.driverVersion();
}

}  // namespace muster::validate
