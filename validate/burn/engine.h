// SPDX-License-Identifier: Apache-2.0
// The burn engine: runs stages on all devices at once and evaluates them. Same stages, same
// evaluation, whatever the device.
#pragma once

#include "validate/burn/report.h"

#include <functional>

namespace muster::burn {

enum class StageKind { Gemm, Memory, Copy, Power, Units, Caches };
struct Stage {
  StageKind kind = StageKind::Gemm;
  Dtype dtype = Dtype::Fp32;
  Operands operands = Operands::Integer;
  std::chrono::milliseconds duration{
      0};  ///< the least that a stage does is done however short this is

  std::string name() const;  ///< "gemm fp32 integer", "memory"
};

struct Options {
  std::vector<Stage> stages;
  std::uint64_t seed = 0x6d7573746572;
  int n = 0;                       ///< size of products; 0: what the device prefers
  std::uint64_t memory_bytes = 0;  ///< 0: memory_percent of what is free
  int memory_percent = 80;
  /// The memory stage's duration is for its measurement; its first round, the least that proves
  /// anything, may last until this. 0: no longer.
  std::chrono::milliseconds memory_limit{0};
  std::chrono::milliseconds hold{0};  ///< how long bit-fade leaves the memory alone; 0: no bit-fade
  std::uint64_t copy_bytes = 256u << 20;
  double min_power_share = 0.9;          ///< of the board's limit, as a mean over the power stage
  std::chrono::milliseconds pulse{500};  ///< of load, then of rest, on all devices at the same time
  int pulses = 10;
  std::map<std::string, double>
      floors;  ///< by name of a value: less, no number, or no such value at all fails
  /// Told once, when a call into a device has not returned within its bound, with all that is known
  /// by then: the stage of that device is a timeout that names the call. It must end the process;
  /// nothing can take such a call back. Empty: nobody watches.
  std::function<void(const Report&)> on_hang = {};
  std::chrono::milliseconds hang_limit{120'000};  ///< of one call; walks over memory have more
  std::vector<std::string> sensors;  ///< that must be there: "watts", "ecc", "throttle"; what is
                                     ///< there is evaluated in any case
};

/// Blocks until all stages are through. Devices are borrowed.
/// Effect: loads the machine; takes the memory that the options name
Report burn(const Devices& devices, const Options& options);

/// Products of one number format with both kinds of operands; whole numbers have no random ones.
std::vector<Stage> productStages(Dtype dtype, std::chrono::milliseconds each);
/// Products of every number format of the device but those by name, then memory, copies, units, and
/// caches where the device can tell them apart.
/// `each`: duration of one stage.
std::vector<Stage> usualStages(const Device& device, std::chrono::milliseconds each);

/// What telemetry of one stage says against the device. Pure.
std::vector<std::string> evaluateSensors(const std::vector<Telemetry>& seen,
                                         const std::vector<std::string>& required);
/// Devices of one model that computed something else than the most of them. Pure; marks their
/// stages.
void compareReferences(Report& report);

}  // namespace muster::burn
