// AMD Instinct GPUs by amd-smi's JSON. What it calls "N/A" is no data.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

struct AmdGpu {
  std::string model, serial, pci;
  std::optional<std::uint64_t> ecc_correctable, ecc_uncorrectable;
  std::optional<double> hotspot_c;
};
/// `amd-smi static --asic --bus --json` and `amd-smi metric --ecc --temperature --json`, joined by GPU number.
/// Errors: Corrupt when either is no such list, or they do not name the same GPUs
Result<std::vector<AmdGpu>> parseAmdSmi(std::string_view static_json, std::string_view metric_json);

}  // namespace muster::validate
