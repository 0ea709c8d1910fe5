// SPDX-License-Identifier: Apache-2.0
// The newest look at a fabric, for who asks what was seen and must not look himself: a discovery of
// a large fabric takes a minute. In the run folder, as the JSON that `muster fabric … --json`
// prints.
#pragma once

#include "base/clock.h"
#include "base/result.h"

#include <nlohmann/json.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace muster::fabric {

enum class KeptReportKind { Diff, Health };

struct KeptReport {
  WallTime at{};
  nlohmann::json report;
};

/// Replaces what was kept before. Errors: those of the disk
Result<void> keepReport(const std::filesystem::path& run_folder, KeptReportKind kind, WallTime at,
                        std::string_view report_json);
/// Nothing: there was no look yet, or what is there cannot be read.
std::optional<KeptReport> keptReport(const std::filesystem::path& run_folder, KeptReportKind kind);

}  // namespace muster::fabric
