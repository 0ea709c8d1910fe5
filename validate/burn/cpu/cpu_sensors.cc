// SPDX-License-Identifier: Apache-2.0
// Source: Documentation/power/powercap, Documentation/ABI/testing/sysfs-devices-system-cpu,
// Documentation/admin-guide/RAS of Linux.
#include "validate/burn/cpu/cpu_sensors.h"

#include <algorithm>
#include <charconv>
#include <fstream>

namespace muster::burn::cpu {
namespace {

namespace fs = std::filesystem;

std::optional<double> numberIn(const fs::path& file) {
  const auto text = firstLine(file);
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

/// The values of FILE in all folders of `parent` whose name begins with `prefix`.
std::vector<double> numbers(const fs::path& parent, std::string_view prefix, const char* file) {
  std::vector<double> values;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error))
    if (entry.path().filename().string().starts_with(prefix))
      if (const auto value = numberIn(entry.path() / file)) values.push_back(*value);
  return values;
}

std::optional<double> sum(const std::vector<double>& values) {
  if (values.empty()) return std::nullopt;
  double total = 0;
  for (const auto value : values) total += value;
  return total;
}

std::optional<std::uint64_t> count(const std::vector<double>& values, double unit = 1) {
  const auto total = sum(values);
  return total ? std::optional(static_cast<std::uint64_t>(*total * unit)) : std::nullopt;
}

}  // namespace

std::string firstLine(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

/// Packages only: "intel-rapl:0", not its parts "intel-rapl:0:0". A counter that wrapped gives no
/// value for one sample.
std::optional<double> CpuSensors::watts() {
  std::vector<double> energies;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_ / "sys/class/powercap", error)) {
    const auto name = entry.path().filename().string();
    if (std::count(name.begin(), name.end(), ':') != 1) continue;
    if (const auto energy = numberIn(entry.path() / "energy_uj")) energies.push_back(*energy);
  }
  const auto now = std::chrono::steady_clock::now();
  const auto energy = sum(energies), before = energy_uj_;
  const std::chrono::duration<double> passed = now - energy_at_;
  energy_uj_ = energy, energy_at_ = now;
  if (!energy || !before || *energy < *before || passed.count() <= 0) return std::nullopt;
  return (*energy - *before) * 1e-6 / passed.count();
}

Telemetry CpuSensors::sample() {
  Telemetry seen;
  seen.watts = watts();
  const auto cpus = root_ / "sys/devices/system/cpu";
  if (const auto clocks = numbers(cpus, "cpu", "cpufreq/scaling_cur_freq"); !clocks.empty())
    seen.clock_mhz = *sum(clocks) / static_cast<double>(clocks.size()) * 1e-3;
  if (const auto degrees = numbers(root_ / "sys/class/thermal", "thermal_zone", "temp");
      !degrees.empty())
    seen.temperature_c = *std::max_element(degrees.begin(), degrees.end()) * 1e-3;
  seen.throttle_thermal_ns =
      count(numbers(cpus, "cpu", "thermal_throttle/core_throttle_total_time_ms"), 1e6);
  seen.ecc_corrected = count(numbers(root_ / "sys/devices/system/edac/mc", "mc", "ce_count"));
  seen.ecc_uncorrected = count(numbers(root_ / "sys/devices/system/edac/mc", "mc", "ue_count"));
  return seen;
}

}  // namespace muster::burn::cpu
