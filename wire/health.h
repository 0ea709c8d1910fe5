// SPDX-License-Identifier: Apache-2.0
// What an agent sees of its node's health, told with its polls. Only what it saw: what follows from
// it is the controller's table (monitor/symptoms.h), so that an old agent never decides anything.
#pragma once

#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

inline constexpr std::size_t kMaxSymptoms = 256;
inline constexpr std::size_t kMaxSources = 32;
inline constexpr std::size_t kMaxSymptomTextBytes = 512;
inline constexpr std::chrono::hours kRateWindow{1};

struct Symptom {
  std::string id;           ///< "xid.79", "disk.read-only"
  std::string device;       ///< "0000:18:00.0", "nvme0n1", "mlx5_0/1"; may be empty
  std::uint64_t count = 1;  ///< since the node's boot
  std::string text;         ///< what was seen, in the words of who said it
  std::optional<std::uint64_t>
      last_hour;  ///< of a counter: how much of `count` is of the last hour (kRateWindow)

  friend bool operator==(const Symptom&, const Symptom&) = default;
};

/// A source that could not be read is no sign of health: the controller counts it as one of
/// an unhealthy state where it must be there.
struct HealthReport {
  std::vector<Symptom> symptoms;
  std::map<std::string, std::string> sources;  ///< "kernel", "gpu", "disk", "network", "units" →
                                               ///< "ok", "absent", or why it is blind

  friend bool operator==(const HealthReport&, const HealthReport&) = default;
};

inline constexpr std::string_view kSourceOk = "ok";
inline constexpr std::string_view kSourceStarting =
    "starting";  ///< it has not answered yet, and not for long enough to mean anything
inline constexpr std::string_view kSourceAbsent = "absent";  ///< the node has no such thing

std::string toJson(const HealthReport& report);
/// Errors: Corrupt, InvalidInput
Result<HealthReport> parseHealthReport(std::string_view text);

}  // namespace muster::wire
