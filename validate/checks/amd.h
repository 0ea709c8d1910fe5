// SPDX-License-Identifier: Apache-2.0
// AMD Instinct GPUs by amd-smi's JSON, or by rocm-smi's and the kernel. What they call "N/A" is no
// data.
#pragma once

#include "validate/checks/host.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct AmdGpu {
  std::string model, serial, pci;
  std::optional<std::uint64_t> ecc_correctable, ecc_uncorrectable;
  /// Uncorrectable, and nobody has used the data yet; nullopt: this release does not count them.
  std::optional<std::uint64_t> ecc_deferred;
  std::optional<double> hotspot_c, memory_c;
};
/// `amd-smi static --asic --bus --json` and `amd-smi metric --ecc --temperature --json`, joined by
/// GPU number. Errors: Corrupt when either is no such list, or they do not name the same GPUs
Result<std::vector<AmdGpu>> parseAmdSmi(std::string_view static_json, std::string_view metric_json);

/// `rocm-smi --showproductname --showserial --showbus --showtemp --json`; ECC counts are the
/// kernel's (ras/umc_err_count). Errors: Corrupt
Result<std::vector<AmdGpu>> parseRocmSmi(std::string_view json, const Host& host);

/// By amd-smi; where there is none, by rocm-smi and the kernel's own counters.
Result<std::vector<AmdGpu>> lookAtAmd(const Host& host);

}  // namespace muster::validate
