// SPDX-License-Identifier: Apache-2.0
// All that the engine and the phases know of consoles. Who listens and what is kept: bmc/console/.
#pragma once

#include "base/clock.h"
#include "base/ids.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {

/// An installed system is about to restart itself: what its console says from now on is a boot of
/// its own. Returns when somebody listens, or after some seconds; it holds up nothing and never
/// fails.
using RestartCallback = std::function<Task<void>(NodeName node, std::string why)>;

/// A phase's one word to the consoles.
class RestartNotifier {
 public:
  explicit RestartNotifier(RestartCallback callback) : callback_(std::move(callback)) {}
  /// `task`: what restarts the machine. Told once, however often a phase looks; a new controller,
  /// who has to listen anew, tells it again.
  Task<void> announce(NodeName node, std::string task, std::string why);

 private:
  RestartCallback callback_;
  std::map<NodeName, std::string> announced_;  ///< the newest task of each
};

/// The first of a console's lines (finding.h): of which boot they are.
std::string consoleBootLine(int number, WallTime began, const std::string& why);
/// When that boot began; nullopt: the first line does not say.
std::optional<WallTime> consoleBootBegan(const std::vector<std::string>& lines);
/// Marks lines of a boot that began before `since`: they may be older than what they would be
/// evidence of.
std::vector<std::string> markedAsOlder(std::vector<std::string> lines, WallTime since);

}  // namespace muster::lifecycle
