// SPDX-License-Identifier: Apache-2.0
// What NVMe disks and fio say of them. Pure.
#pragma once

#include "base/result.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

/// The SMART page of an NVMe controller, as numbers with units. The page has kelvins and 128-bit
/// counters.
struct NvmeHealth {
  unsigned critical_warning = 0;  ///< bits
  double temperature_c = 0;
  double spare_percent = 0, spare_threshold_percent = 0;
  double used_percent = 0;  ///< of its endurance; may be above 100
  double media_errors = 0;
  double hot_minutes = 0;  ///< in its life, above its critical temperature
};
/// Source: NVM Express Base Specification 2.0, figure 207 (log page 02h). Errors: Corrupt when it
/// is no such page, or says what cannot be: a page of zeros has 0 K
Result<NvmeHealth> parseNvmeHealth(std::string_view page);
/// From which temperature on the disk itself warns, °C; nullopt: it does not say. `identity`:
/// Identify Controller, its field WCTEMP.
Result<std::optional<double>> parseNvmeWarningC(std::string_view identity);
/// What is wrong with it, in words; empty: nothing.
std::vector<std::string> troublesOf(const NvmeHealth& health,
                                    const std::optional<double>& warning_c);

struct FioRates {
  double read_mbytes_per_s = 0, write_mbytes_per_s = 0;  ///< 0: it did not do that
};
/// `fio --output-format=json`. Errors: Corrupt when a job has failed, or a rate that is wanted is
/// no finite number above zero
Result<FioRates> parseFio(std::string_view json, bool reads, bool writes);

/// Those of one model that reach less than 0.8 of its median; three disks and more.
std::vector<std::string> slowerThanTheirLike(const std::map<std::string, double>& rates);

}  // namespace muster::validate
