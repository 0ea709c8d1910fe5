// SPDX-License-Identifier: Apache-2.0
#include "validate/checks/disk_evaluation.h"

#include "base/json_input.h"

#include <endian.h>
#include <fmt/format.h>
#include <nvme/types.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace muster::validate {
namespace {

constexpr double kSlowShare = 0.8;
constexpr double kZeroCelsius = 273.15, kColdestC = -40,
                 kHottestC = 130;     ///< outside of it no disk answers: another unit
constexpr double kWornPercent = 100;  ///< as agents' health has it
constexpr double kHotC = 70;  ///< for disks that name no limit: the usual one of data centre disks

constexpr std::pair<unsigned, std::string_view> kWarnings[] = {
    {0x01, "its spare is used up"},
    {0x02, "too hot or too cold"},
    {0x04, "unreliable after errors"},
    {0x08, "read-only"},
    {0x10, "its volatile memory is not backed up"},
    {0x20, "its persistent memory is read-only or unreliable"}};

template <class T>
std::optional<T> structureOf(std::string_view bytes) {
  if (bytes.size() != sizeof(T)) return std::nullopt;
  T out;
  std::memcpy(&out, bytes.data(), sizeof out);
  return out;
}

double littleEndian(const unsigned char* bytes, int count) {
  double value = 0;
  for (int i = count - 1; i >= 0; --i) value = value * 256 + bytes[i];
  return value;
}

Result<double> rateOf(const nlohmann::json& job, const char* way) {
  const auto part = job.value(way, nlohmann::json::object());
  if (!part.is_object() || !part.contains("bw_bytes") || !part["bw_bytes"].is_number())
    return fail(ErrorCode::Corrupt, fmt::format("fio gave no bw_bytes of {}", way));
  return part["bw_bytes"].get<double>() * 1e-6;
}

}  // namespace

Result<NvmeHealth> parseNvmeHealth(std::string_view bytes) {
  const auto page = structureOf<nvme_smart_log>(bytes);
  if (!page)
    return fail(ErrorCode::Corrupt, fmt::format("its SMART page has {} bytes, not {}", bytes.size(),
                                                sizeof(nvme_smart_log)));
  NvmeHealth health;
  health.critical_warning = page->critical_warning;
  health.temperature_c = littleEndian(page->temperature, 2) - kZeroCelsius;
  health.spare_percent = page->avail_spare, health.spare_threshold_percent = page->spare_thresh,
  health.used_percent = page->percent_used;
  health.media_errors = littleEndian(page->media_errors, 16);
  health.hot_minutes = le32toh(page->critical_comp_time);
  if (!(health.temperature_c >= kColdestC && health.temperature_c <= kHottestC))
    return fail(ErrorCode::Corrupt,
                fmt::format("its SMART page says {:.0f} °C", health.temperature_c));
  if (health.spare_percent > 100 || health.spare_threshold_percent > 100)
    return fail(ErrorCode::Corrupt,
                fmt::format("its SMART page says {} % of spare, threshold {} %",
                            health.spare_percent, health.spare_threshold_percent));
  return health;
}

Result<std::optional<double>> parseNvmeWarningC(std::string_view identity) {
  const auto page = structureOf<nvme_id_ctrl>(identity);
  if (!page)
    return fail(ErrorCode::Corrupt, fmt::format("its identity has {} bytes, not {}",
                                                identity.size(), sizeof(nvme_id_ctrl)));
  const unsigned kelvins = le16toh(page->wctemp);
  if (kelvins == 0) return std::optional<double>();
  const double warning = kelvins - kZeroCelsius;
  if (!(warning > 0 && warning <= kHottestC))
    return fail(ErrorCode::Corrupt,
                fmt::format("its identity says that it warns at {:.0f} °C", warning));
  return std::optional(warning);
}

std::vector<std::string> troublesOf(const NvmeHealth& health,
                                    const std::optional<double>& warning_c) {
  std::vector<std::string> wrong;
  for (const auto& [bit, words] : kWarnings)
    if (health.critical_warning & bit) wrong.push_back(fmt::format("it warns: {}", words));
  if (const unsigned others = health.critical_warning & ~0x3fu)
    wrong.push_back(fmt::format("it warns: {:#x}", others));
  if (health.media_errors > 0)
    wrong.push_back(
        fmt::format("{:.0f} times data could not be read or written right", health.media_errors));
  if (health.spare_percent < health.spare_threshold_percent)
    wrong.push_back(fmt::format("{} % of its spare is left, {} % at least is wanted",
                                health.spare_percent, health.spare_threshold_percent));
  if (health.used_percent >= kWornPercent)
    wrong.push_back(fmt::format("{} % of its endurance is used", health.used_percent));
  if (const double hot = warning_c.value_or(kHotC); !(health.temperature_c < hot))
    wrong.push_back(fmt::format("{:.0f} °C, {:.0f} °C is too hot", health.temperature_c, hot));
  return wrong;
}

Result<FioRates> parseFio(std::string_view text, bool reads, bool writes) {
  const auto json = jsonOrNone(text, kToolJson);
  if (!json.is_object() || !json.contains("jobs") || !json["jobs"].is_array() ||
      json["jobs"].empty())
    return fail(ErrorCode::Corrupt, "fio printed no JSON with jobs");
  FioRates rates;
  for (const auto& job : json["jobs"]) {
    const int error = job.is_object() && job.contains("error") && job["error"].is_number_integer()
                          ? job["error"].get<int>()
                          : -1;
    if (error != 0)
      return fail(ErrorCode::Corrupt, fmt::format("a job of fio ended with error {}", error));
    if (reads) {
      TRY(rate, rateOf(job, "read"));
      rates.read_mbytes_per_s += rate;
    }
    if (writes) {
      TRY(rate, rateOf(job, "write"));
      rates.write_mbytes_per_s += rate;
    }
  }
  if (reads && !(std::isfinite(rates.read_mbytes_per_s) && rates.read_mbytes_per_s > 0))
    return fail(ErrorCode::Corrupt, "fio read nothing");
  if (writes && !(std::isfinite(rates.write_mbytes_per_s) && rates.write_mbytes_per_s > 0))
    return fail(ErrorCode::Corrupt, "fio wrote nothing");
  return rates;
}

std::vector<std::string> slowerThanTheirLike(const std::map<std::string, double>& rates) {
  if (rates.size() < 3) return {};
  std::vector<double> sorted;
  for (const auto& [disk, rate] : rates) sorted.push_back(rate);
  std::sort(sorted.begin(), sorted.end());
  const double median = sorted[sorted.size() / 2];
  std::vector<std::string> slow;
  for (const auto& [disk, rate] : rates)
    if (!(rate >= kSlowShare * median))
      slow.push_back(
          fmt::format("{} reads {:.0f} MB/s, others of its model {:.0f}", disk, rate, median));
  return slow;
}

}  // namespace muster::validate
