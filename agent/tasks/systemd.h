// SPDX-License-Identifier: Apache-2.0
// What systemd is told and asked on a node.
#pragma once

#include "agent/tasks/tasks.h"

#include <string>
#include <vector>

namespace muster::agent {

/// Errors: as runTool
Async<std::string> systemctl(TaskTools tools, std::vector<std::string> words,
                             std::chrono::seconds limit);
/// "active", "inactive", "failed", "activating", …; empty when systemd does not answer.
Task<std::string> unitState(TaskTools tools, std::string unit);
/// The end of the unit's journal, or why it cannot be read.
Task<std::string> lastWords(TaskTools tools, std::string unit);
/// Until the unit is active. Errors: Internal (it failed), Timeout; both with the end of its
/// journal
Async<void> untilActive(TaskTools tools, std::string unit, std::chrono::seconds limit);

}  // namespace muster::agent
