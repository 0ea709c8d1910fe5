// The continuous, light look of an installed agent at its own node: kernel log, GPUs, disks, network, units. It reads counters and
// states, and loads nothing; a GPU is asked in a process of its own, with a deadline.
#pragma once

#include "agent/protocol/health.h"
#include "agent/tasks/kernel_log.h"
#include "agent/tasks/tasks.h"

#include <map>
#include <optional>
#include <set>
#include <string>

namespace muster::agent {

/// Symptoms of one disk in `smartctl --json -H -A`. Pure. Errors: Corrupt
Result<std::vector<Symptom>> parseSmart(std::string_view json, const std::string& device);
/// "system.fabric-manager" of `systemctl show`, and "system.unit-failed" of `systemctl list-units --state=failed`. Pure.
std::vector<Symptom> parseUnits(std::string_view shown, std::string_view failed);

inline constexpr int kSilencesMeant = 3;  ///< one slow answer is no sickness; so many in a row are

class HealthSense {
 public:
  explicit HealthSense(TaskTools tools) : tools_(std::move(tools)) {}
  /// Bounded by the deadlines of the programs that it runs. What cannot be read is said in `sources`.
  Task<HealthReport> look();

 private:
  void kernel(HealthReport& report);
  Task<void> gpus(HealthReport& report);
  Async<HealthReport> askGpus();
  Task<void> disks(HealthReport& report);
  void network(HealthReport& report);
  void netDevices(HealthReport& report) const;
  Task<void> units(HealthReport& report);

  const TaskTools tools_;
  KernelLog log_;
  std::optional<HealthReport> gpus_;                     ///< the last answer
  int gpu_silences_ = 0;                                 ///< in a row
  std::size_t most_gpus_ = 0;                            ///< that were ever seen by this agent
  std::set<std::string> active_ports_;                   ///< that were ever seen active: others may have no cable
  std::map<std::string, std::vector<Symptom>> by_disk_;  ///< of the last look at each
  std::string disk_trouble_;
  std::size_t next_disk_ = 0;                            ///< one disk a look: some take seconds to answer
};

}  // namespace muster::agent
