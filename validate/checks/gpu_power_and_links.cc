// SPDX-License-Identifier: Apache-2.0
// Checks over what the board around the chip says: links, bus, clocks, power, heat.
#include "validate/checks/expectations.h"
#include "validate/checks/gpu_snapshot.h"

#include <thread>

namespace muster::validate {
namespace {

// nvmlClocksThrottleReason…; a GPU in good health may show idle, application clocks, software power
// cap, sync boost, display.
constexpr std::uint64_t kHwSlowdown = 0x8, kSwThermal = 0x20, kHwThermal = 0x40,
                        kHwPowerBrake = 0x80;
constexpr std::uint64_t kBadThrottle = kHwSlowdown | kSwThermal | kHwThermal | kHwPowerBrake;
constexpr double kWindowSeconds = 2;        ///< in which no counter of bad throttling may grow
constexpr double kMaxHeldBackSeconds = 10;  ///< since the driver was loaded
constexpr unsigned kFabricCompleted = 3;
constexpr double kMarginC = 5;
constexpr double kMaxReplays = 80;  ///< Source: DCGM's PCIe replay limit

/// The gate's parameter, else the table's number for this model; nullopt: nobody knows, so nothing
/// is expected.
std::optional<double> expected(const nlohmann::json& params, const char* param,
                               const GpuHealth& gpu, const char* key) {
  if (params.contains(param)) return params.at(param).get<double>();
  const auto* sku = Skus::builtIn().find(gpu.identity.model);
  if (!sku) return std::nullopt;
  const auto row = sku->expect.find(key);
  return row == sku->expect.end() ? std::nullopt : std::optional(row->second.value);
}

/// Of one GPU after the other: whether there was anything that each had to reach.
class Expected {
 public:
  /// Answers what to say of this GPU.
  const char* note(const std::optional<double>& value) {
    is_known_ = is_known_ && value;
    return value ? "" : kNothing;
  }
  /// "as expected" is no word for GPUs of which nothing was.
  Verdict said(Verdict verdict) const {
    if (verdict.status == wire::CheckStatus::Pass && !is_known_) verdict.text += kNothing;
    return verdict;
  }

 private:
  static constexpr const char* kNothing =
      " (the table has no value for this model: nothing was expected of it)";
  bool is_known_ = true;
};

/// Nanoseconds held back by heat or the board; nullopt when the driver counts none of it. Not by
/// power capping, nor by reliability: at its highest clock a good chip is held by its voltage, as
/// muster-burn has it too.
std::optional<std::uint64_t> heldBackNs(const GpuHealth& gpu) {
  if (!gpu.throttle_thermal_ns && !gpu.throttle_board_ns) return std::nullopt;
  return gpu.throttle_thermal_ns.value_or(0) + gpu.throttle_board_ns.value_or(0);
}

/// Neither the table nor NVML knows of any NVLink of this model.
bool hasNoLinks(const GpuHealth& gpu) {
  return !expected(nlohmann::json::object(), "links", gpu, "nvlinks") &&
         gpu.nvlinks_up.value_or(0) == 0;
}

}  // namespace

Verdict checkGpuThrottle(const nlohmann::json& params, const Host&) {
  const double window = params.value("window_seconds", kWindowSeconds),
               most = params.value("max_seconds", kMaxHeldBackSeconds);
  const auto before = readGpus();
  if (!before) return noData(before.error().str());
  std::this_thread::sleep_for(
      std::chrono::duration<double>(window));  // the window of the measurement
  std::map<std::string, std::optional<std::uint64_t>> counted;
  for (const auto& gpu : before->gpus) counted[gpu.identity.uuid] = heldBackNs(gpu);
  return everyGpu(
      [&](const GpuHealth& gpu) {
        if (!gpu.throttle_reasons) return noData("NVML gives no throttle reasons");
        if (const auto bad = *gpu.throttle_reasons & kBadThrottle)
          return failed(fmt::format("throttled, reasons {:#x} (of {:#x}) at {} °C", bad,
                                    *gpu.throttle_reasons, gpu.temperature_c.value_or(0)));
        const auto now = heldBackNs(gpu), then = counted[gpu.identity.uuid];
        if (!now || !then) return noData("NVML counts no time throttled");
        if (*now != *then)
          return failed(
              fmt::format("throttled for {:.3f} of the last {:.1f} s by heat or its board",
                          (static_cast<double>(*now) - static_cast<double>(*then)) * 1e-9, window));
        const double seconds = static_cast<double>(*now) * 1e-9;
        auto verdict =
            seconds <= most
                ? pass(fmt::format(
                      "reasons {:#x}, throttled for {:.3f} s since the driver was loaded",
                      *gpu.throttle_reasons, seconds))
                : failed(fmt::format("throttled for {:.1f} s by heat or its board since the driver "
                                     "was loaded, {:.0f} s are allowed",
                                     seconds, most));
        verdict.values["held_back_seconds"] = seconds;
        return verdict;
      },
      "not throttled");
}

Verdict checkGpuNvlink(const nlohmann::json& params, const Host&) {
  const double most_errors = params.value("max_errors", 0.0);
  Expected expectation;
  return expectation.said(everyGpu(
      [&](const GpuHealth& gpu) {
        const auto wanted = expected(params, "links", gpu, "nvlinks");
        if (!gpu.nvlinks_up || !gpu.nvlinks_down) return noData("NVML gives no NVLink state");
        if (wanted && *gpu.nvlinks_up != *wanted)
          return failed(fmt::format("{} NVLinks are up, {} expected", *gpu.nvlinks_up, *wanted));
        if (*gpu.nvlinks_down)
          return failed(fmt::format("{} NVLinks are down while {} are up", *gpu.nvlinks_down,
                                    *gpu.nvlinks_up));
        if (*gpu.nvlinks_up && !gpu.nvlink_errors)
          return noData("NVML gives no NVLink error counters");
        const auto errors = gpu.nvlink_errors.value_or(0);
        if (static_cast<double>(errors) > most_errors)
          return failed(fmt::format("{} NVLink replays, recoveries and CRC errors", errors));
        auto verdict =
            pass(fmt::format("{} NVLinks up{}", *gpu.nvlinks_up, expectation.note(wanted)));
        verdict.values = {{"nvlinks", static_cast<double>(*gpu.nvlinks_up)},
                          {"nvlink_errors", static_cast<double>(errors)}};
        return verdict;
      },
      "no NVLink down, no errors"));
}

Verdict checkGpuFabric(const nlohmann::json&, const Host&) {
  return everyGpu(
      [](const GpuHealth& gpu) {
        if (!gpu.fabric && hasNoLinks(gpu)) return pass("a card without NVLink has no NVSwitch");
        if (!gpu.fabric) return noData("NVML gives no fabric state: no NVSwitch, or an old driver");
        if (gpu.fabric->state != kFabricCompleted)
          return failed(
              fmt::format("not registered with the fabric: state {} (1 not started, 2 in progress)",
                          gpu.fabric->state));
        if (gpu.fabric->status != 0)
          return failed(fmt::format("registering with the fabric ended with NVML's code {}",
                                    gpu.fabric->status));
        if (const auto trouble = fabricTroubleOf(gpu.fabric->health_mask); !trouble.empty())
          return failed(fmt::format("registered, but: {}", trouble));
        return pass("registered");
      },
      "registered with the fabric");
}

Verdict checkGpuPcie(const nlohmann::json& params, const Host&) {
  const double most_replays = params.value("max_replays", kMaxReplays);
  Expected expectation;
  std::optional<unsigned> slowest;  // the generation of now: idle links save power
  auto all = expectation.said(everyGpu(
      [&](const GpuHealth& gpu) {
        if (!gpu.pcie || !gpu.pcie_replays) return noData("NVML gives no PCIe state");
        const auto generation = expected(params, "generation", gpu, "pcie_generation"),
                   width = expected(params, "width", gpu, "pcie_width");
        const auto& pcie =
            *gpu.pcie;  // at rest the link may run at a lower generation, but never narrower
        if (generation && pcie.max_generation < *generation)
          return failed(fmt::format("slot and GPU together reach generation {}, {} expected",
                                    pcie.max_generation, *generation));
        if (width && pcie.width < *width)
          return failed(fmt::format("{} lanes, {} expected", pcie.width, *width));
        if (pcie.width < pcie.max_width)
          return failed(fmt::format("{} of {} lanes", pcie.width, pcie.max_width));
        if (static_cast<double>(*gpu.pcie_replays) > most_replays)
          return failed(
              fmt::format("{} PCIe replays, {} are allowed", *gpu.pcie_replays, most_replays));
        auto verdict = pass(fmt::format("generation {} of {}, {} lanes, {} replays{}",
                                        pcie.generation, pcie.max_generation, pcie.width,
                                        *gpu.pcie_replays, expectation.note(generation)));
        slowest = std::min(slowest.value_or(pcie.generation), pcie.generation);
        verdict.values = {{"pcie_lanes", static_cast<double>(pcie.width)},
                          {"pcie_replays", static_cast<double>(*gpu.pcie_replays)}};
        return verdict;
      },
      "PCIe with all lanes, its highest generation as expected"));
  if (all.status == wire::CheckStatus::Pass && slowest)
    all.text += fmt::format("; at generation {} at this moment", *slowest);
  return all;
}

Verdict checkGpuClocks(const nlohmann::json&, const Host&) {
  const auto look = readGpus();
  if (!look) return noData(look.error().str());
  std::map<std::string, std::pair<unsigned, unsigned>> most;
  for (const auto& gpu : look->gpus) {
    auto& known = most[gpu.identity.model];
    known = {std::max(known.first, gpu.sm_max_mhz.value_or(0)),
             std::max(known.second, gpu.memory_max_mhz.value_or(0))};
  }
  return everyGpu(
      *look,
      [&](const GpuHealth& gpu) {
        if (!gpu.sm_max_mhz || !gpu.memory_max_mhz || !gpu.sm_mhz)
          return noData("NVML gives no clocks");
        const auto [sm, memory] = most.at(gpu.identity.model);
        if (*gpu.sm_max_mhz < sm || *gpu.memory_max_mhz < memory)
          return failed(fmt::format("reaches {} and {} MHz at most, others of its model {} and {}",
                                    *gpu.sm_max_mhz, *gpu.memory_max_mhz, sm, memory));
        auto verdict = pass(fmt::format("{} of {} MHz", *gpu.sm_mhz, *gpu.sm_max_mhz));
        verdict.values = {{"sm_mhz", static_cast<double>(*gpu.sm_mhz)}};
        return verdict;
      },
      "the same highest clocks");
}

Verdict checkGpuPower(const nlohmann::json& params, const Host&) {
  Expected expectation;
  return expectation.said(everyGpu(
      [&](const GpuHealth& gpu) {
        if (!gpu.power_limit_mw || !gpu.power_default_mw || !gpu.power_mw)
          return noData("NVML gives no power limit");
        const double limit = *gpu.power_limit_mw * 1e-3, usual = *gpu.power_default_mw * 1e-3;
        const auto wanted = expected(params, "limit_watts", gpu, "power_limit_watts");
        const double least =
            params.contains("limit_watts") ? *wanted : std::max(usual, wanted.value_or(0));
        auto verdict =
            limit >= least
                ? pass(fmt::format("{:.0f} W of {:.0f} W{}", *gpu.power_mw * 1e-3, limit,
                                   expectation.note(wanted)))
                : failed(fmt::format("may draw {:.0f} W, {:.0f} W expected", limit, least));
        verdict.values = {{"power_limit_watts", limit}, {"power_watts", *gpu.power_mw * 1e-3}};
        return verdict;
      },
      "power limit as expected"));
}

Verdict checkGpuTemperature(const nlohmann::json& params, const Host&) {
  const double margin = params.value("margin_c", kMarginC);
  return everyGpu(
      [&](const GpuHealth& gpu) {
        if (!gpu.temperature_c || !gpu.slowdown_c)
          return noData("NVML gives no temperature, or not where the chip is throttled");
        const double left =
            static_cast<double>(*gpu.slowdown_c) - static_cast<double>(*gpu.temperature_c);
        auto verdict = left >= margin
                           ? pass(fmt::format("{} °C, throttled at {} °C", *gpu.temperature_c,
                                              *gpu.slowdown_c))
                           : failed(fmt::format("{} °C, {} °C below where it is throttled",
                                                *gpu.temperature_c, left));
        verdict.values["temperature_c"] = *gpu.temperature_c;
        return verdict;
      },
      "cool enough");
}

}  // namespace muster::validate
