// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/hip/amd_board.h"

#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>

namespace muster::burn::hip {
namespace {

constexpr std::size_t kMostBytes = 64u << 10;

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text(kMostBytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return text;
}

std::string line(const std::filesystem::path& file) {
  const auto text = read(file);
  return text.substr(0, text.find('\n'));
}

template <class T = std::uint64_t>
std::optional<T> numberAtStart(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::optional<double> scaled(const std::filesystem::path& file, double unit) {
  const auto value = numberAtStart(line(file));
  return value ? std::optional(static_cast<double>(*value) * unit) : std::nullopt;
}

/// The one folder of sensors that the driver has made.
std::filesystem::path sensorsOf(const std::filesystem::path& device) {
  std::error_code error;
  for (std::filesystem::directory_iterator each(device / "hwmon", error), end;
       !error && each != end; each.increment(error))
    return each->path();
  return {};
}

/// The hottest spot of the chip.
std::optional<double> junction(const std::filesystem::path& sensors) {
  for (const char* number : {"1", "2", "3"})
    if (line(sensors / (std::string("temp") + number + "_label")) == "junction")
      return scaled(sensors / (std::string("temp") + number + "_input"), 1e-3);
  return std::nullopt;
}

/// "ue: 0\nce: 3\n", a block of the chip a file. nullopt: no block says it.
std::optional<std::uint64_t> errorsOf(const std::filesystem::path& ras, std::string_view kind) {
  std::optional<std::uint64_t> sum;
  std::error_code error;
  for (std::filesystem::directory_iterator each(ras, error), end; !error && each != end;
       each.increment(error)) {
    if (!each->path().filename().string().ends_with("_err_count")) continue;
    const std::string text = "\n" + read(each->path());
    const auto key = "\n" + std::string(kind) + ": ";
    const auto at = text.find(key);
    if (at == std::string::npos) continue;
    if (const auto count = numberAtStart(std::string_view(text).substr(at + key.size())))
      sum = sum.value_or(0) + *count;
  }
  return sum;
}

template <class T>
T valueAt(std::string_view bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

}  // namespace

std::optional<Residencies> parseResidencies(std::string_view gpu_metrics) {
  constexpr std::size_t kHeaderBytes = 4, kClock16 = 24, kClock17 = 32, kAfterClock = 32;
  constexpr std::uint32_t kNotOffered = 0xffffffff;
  if (gpu_metrics.size() < kHeaderBytes || gpu_metrics[2] != 1) return std::nullopt;
  const auto revision = gpu_metrics[3];
  if (revision < 6 || revision > 8) return std::nullopt;
  const auto clock = revision == 6 ? kClock16 : kClock17;
  if (gpu_metrics.size() < clock + kAfterClock) return std::nullopt;
  const auto next = [&](std::size_t number) {
    return valueAt<std::uint32_t>(gpu_metrics,
                                  clock + sizeof(std::uint64_t) + number * sizeof(std::uint32_t));
  };
  const Residencies seen{valueAt<std::uint64_t>(gpu_metrics, clock),
                         next(0),
                         next(1),
                         next(2),
                         next(3),
                         next(4),
                         next(5)};
  for (const auto value :
       {seen.cycles, seen.board, seen.power, seen.socket_heat, seen.regulator_heat, seen.hbm_heat})
    if (value == kNotOffered) return std::nullopt;
  return seen;
}

AmdBoard::AmdBoard(const std::filesystem::path& devices, const std::string& pci)
    : folder_(devices / pci) {}

std::string AmdBoard::serial() const {
  const auto serial = line(folder_ / "serial_number");
  return serial.empty() ? line(folder_ / "unique_id") : serial;
}

Telemetry AmdBoard::sample() {
  Telemetry out;
  const auto sensors = sensorsOf(folder_);
  out.watts = scaled(sensors / "power1_average", 1e-6);
  if (!out.watts) out.watts = scaled(sensors / "power1_input", 1e-6);
  out.limit_watts = scaled(sensors / "power1_cap", 1e-6);
  out.clock_mhz = scaled(sensors / "freq1_input", 1e-6);
  out.temperature_c = junction(sensors);
  out.ecc_uncorrected = errorsOf(folder_ / "ras", "ue");
  out.ecc_corrected = errorsOf(folder_ / "ras", "ce");
  addThrottling(out);
  return out;
}

/// Cycles of the firmware's loop become time by the clock that comes with them. Differences are
/// mod 2³², as the counters are.
void AmdBoard::addThrottling(Telemetry& out) {
  const auto seen = parseResidencies(read(folder_ / "gpu_metrics"));
  if (!seen) return;
  if (last_) {
    const std::uint32_t cycles = seen->cycles - last_->cycles;
    const double cycle_ns =
        cycles ? static_cast<double>(seen->clock_ns - last_->clock_ns) / cycles : 0;
    const auto add = [cycle_ns](std::uint64_t& sum, std::uint32_t grown) {
      sum += static_cast<std::uint64_t>(cycle_ns * grown);
    };
    add(power_ns_, seen->power - last_->power);
    add(board_ns_, seen->board - last_->board);
    add(heat_ns_, seen->socket_heat - last_->socket_heat);
    add(heat_ns_, seen->regulator_heat - last_->regulator_heat);
    add(heat_ns_, seen->hbm_heat - last_->hbm_heat);
    if (cycles) last_ = seen;
  } else {
    last_ = seen;
  }
  out.throttle_power_ns = power_ns_, out.throttle_thermal_ns = heat_ns_,
  out.throttle_hardware_ns = board_ns_;
}

}  // namespace muster::burn::hip
