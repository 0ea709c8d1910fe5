// SPDX-License-Identifier: Apache-2.0
// Consoles: every boot that muster begins is listened to, kept, and its last lines are there for
// whoever says why it failed.
#pragma once

#include "bmc/bmc.h"
#include "bmc/console/source.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace muster::bmc {

inline constexpr std::size_t kMaxCaptures =
    512;  ///< at one time; a node beyond them boots unheard, which is said
inline constexpr std::size_t kRingBytes = 16u << 10;  ///< of a capture, in memory
inline constexpr std::size_t kFindingLines = 20;
inline constexpr std::chrono::minutes kCaptureLimit{30};  ///< from the begin of a boot
inline constexpr std::chrono::seconds kCaptureLinger{
    60};  ///< after the boot has come to its end: a panic may follow
inline constexpr std::chrono::seconds kOpenWait{
    5};  ///< a boot waits no longer for somebody to listen

/// nullptr: the node has no console.
using ConsoleFactory = std::function<std::unique_ptr<ConsoleSource>(const NodeName&)>;

class Consoles {
 public:
  virtual ~Consoles() = default;
  /// What the node says from now on is a boot of its own. Returns when somebody listens, or after
  /// kOpenWait: listening never holds up, nor fails, a boot. `is_up`, when there is one, is asked
  /// every few seconds; once it says so the boot has ended.
  virtual Task<void> bootBegins(NodeName node, std::string why,
                                std::function<bool()> is_up = {}) = 0;
  virtual void bootEnded(const NodeName& node) = 0;
  /// Of which boot they are (lifecycle/model/consoles.h), then the last lines of the node's newest
  /// boot as plain text (ansi_strip.h), or why there are none. Empty: it has no console, or has
  /// said nothing.
  virtual std::vector<std::string> lastLines(const NodeName& node) const = 0;
  /// Gives all lines back; bounded by some seconds.
  virtual Async<void> close() = 0;
};

std::unique_ptr<Consoles> makeConsoles(ConsoleFactory factory, std::filesystem::path kept_folder,
                                       Clock& clock, Workers& workers);

/// What consoles need of their process; all of it outlives them. `bmcs` are asked only where the
/// inventory says so (via: redfish).
struct ConsoleServices {
  const inventory::Cluster& cluster;
  lifecycle::Store& store;
  Clock& clock;
  Workers& workers;
  BmcFleet& bmcs;
};
/// What the inventory says. The line is shared (shared.h): RUN is the same for all processes of a
/// state.
ConsoleFactory makeConsoleFactory(ConsoleServices use, std::filesystem::path run_folder);

/// The fleet, but whatever starts a machine lets the consoles listen first.
std::unique_ptr<BmcFleet> listenAtBoot(std::unique_ptr<BmcFleet> fleet, Consoles& consoles);

}  // namespace muster::bmc
