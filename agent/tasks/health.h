// SPDX-License-Identifier: Apache-2.0
// The continuous, light look of an installed agent at its own node: kernel log, GPUs, disks,
// network, units. It reads counters and states, and loads nothing; a GPU is asked in a process of
// its own, with a deadline.
#pragma once

#include "agent/tasks/kernel_log.h"
#include "agent/tasks/link_sense.h"
#include "agent/tasks/tasks.h"
#include "wire/health.h"

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace muster::agent {

/// Symptoms of one disk in `smartctl --json -H -A`. Pure. Errors: Corrupt
Result<std::vector<wire::Symptom>> parseSmart(std::string_view json, const std::string& device);
/// "system.fabric-manager" of `systemctl show`, and "system.unit-failed" of `systemctl list-units
/// --state=failed`. Pure.
std::vector<wire::Symptom> parseUnits(std::string_view shown, std::string_view failed);

inline constexpr int kSilencesMeant = 3;  ///< one slow answer is no fault; so many in a row are

/// How much of a growing counter is of the last hour. Pure.
class RateWindow {
 public:
  /// `up_for`: since the node's boot. The first value counts from boot, unless that is longer ago
  /// than the window.
  std::uint64_t lastHour(std::uint64_t value, std::chrono::seconds up_for);

 private:
  std::deque<std::pair<std::chrono::seconds, std::uint64_t>> seen_;  ///< one a minute at most
};

class HealthSense {
 public:
  /// `state`: a folder for what must outlive this agent in the same boot; empty: nothing does.
  explicit HealthSense(TaskTools tools, std::filesystem::path state = {});
  /// Bounded by the deadlines of the programs that it runs. What cannot be read is said in
  /// `sources`.
  Task<wire::HealthReport> look();
  /// What was said of these GPUs up to now is over, also after a restart of the agent.
  void gpusWereReset(const std::vector<std::string>& devices);

 private:
  std::chrono::seconds upFor() const;
  /// A counter that never goes back, with how much of it is of the last hour.
  void counter(wire::HealthReport& report, wire::Symptom symptom);
  void kernel(wire::HealthReport& report);
  Task<void> gpus(wire::HealthReport& report);
  Async<wire::HealthReport> askGpus();
  Task<void> disks(wire::HealthReport& report);
  void network(wire::HealthReport& report);
  void netDevices(wire::HealthReport& report);
  Task<void> units(wire::HealthReport& report);

  const TaskTools tools_;
  const std::filesystem::path marks_file_;
  std::map<std::string, RateWindow> windows_;  ///< by symptom and device
  KernelLog log_;
  std::optional<wire::HealthReport> gpus_;  ///< the last answer
  int gpu_silences_ = 0;                    ///< in a row
  std::size_t most_gpus_ = 0;               ///< that were ever seen by this agent
  LinkSense links_;
  std::set<std::string> active_ports_;  ///< that were ever seen active: others may have no cable
  std::map<std::string, std::vector<wire::Symptom>> by_disk_;  ///< of the last look at each
  std::string disk_trouble_;
  std::size_t next_disk_ = 0;  ///< one disk a look: some take seconds to answer
};

}  // namespace muster::agent
