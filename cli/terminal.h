// SPDX-License-Identifier: Apache-2.0
// The operator's terminal on one side, a line on the other.
#pragma once

#include "base/io/dialogue.h"

#include <chrono>
#include <memory>

namespace muster::cli {

inline constexpr char kLeaveKey = 0x1d;  ///< Ctrl-]

/// Shows what comes and sends what is typed, until Ctrl-] is typed or the line ends. The terminal
/// is raw meanwhile: Ctrl-C goes to the machine. Standard input that is no terminal is sent too;
/// its end ends nothing.
Async<void> talk(std::unique_ptr<io::Dialogue> line);

/// Waits for the time. Answers false, at once, when nobody reads standard output any more; a signal
/// ends the wait early.
bool waitWhileRead(std::chrono::milliseconds time);

}  // namespace muster::cli
