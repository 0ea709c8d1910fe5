// SPDX-License-Identifier: Apache-2.0
// What a node's health was before: in which boots a symptom was seen, and which repairs were tried.
// Kept in the store, bounded.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "lifecycle/store/store.h"

#include <map>
#include <string>
#include <vector>

namespace muster::monitor {

inline constexpr std::chrono::hours kRemembered{24 *
                                                30};  ///< what is older says nothing about a repair
inline constexpr std::size_t kMaxRemembered = 64;     ///< of each kind, the newest

class HealthHistory {
 public:
  struct Mark {
    WallTime at{};
    std::string id;  ///< boot, or intent
  };

  /// Errors: those of the store, Corrupt
  static Result<HealthHistory> read(lifecycle::Store& store, const NodeName& node, WallTime now);

  /// Earlier boots than `boot` in which this symptom was seen.
  int bootsBefore(const std::string& symptom, const std::string& boot) const;
  int reboots() const { return static_cast<int>(reboots_.size()); }
  bool knowsReboot(const std::string& intent) const;
  /// Both answer whether something is new, so that nothing is written for what is known.
  bool see(const std::string& symptom, const std::string& boot, WallTime at);
  bool rebooted(const std::string& intent, WallTime at);
  /// GPUs are reset once in a boot; what comes back after that needs the reboot.
  bool knowsGpuReset(const std::string& boot) const;
  bool gpusReset(const std::string& boot, WallTime at);
  Result<void> write(lifecycle::Store& store, const NodeName& node) const;

 private:
  std::map<std::string, std::vector<Mark>> seen_;
  std::vector<Mark> reboots_, gpu_resets_;
};

}  // namespace muster::monitor
