// SPDX-License-Identifier: Apache-2.0
// How long the parts of an installation wait before they look again.
#pragma once

#include <chrono>

namespace muster::firmware {

/// After something was begun.
inline constexpr std::chrono::milliseconds kFirstLook{300};
/// Until what has restarted is as it was before.
inline constexpr std::chrono::seconds kStabilizePoll{5};
/// Until the machine has started.
inline constexpr std::chrono::seconds kStartPoll{5};
/// A BMC that takes nothing now.
inline constexpr std::chrono::seconds kBusyPoll{10};

}  // namespace muster::firmware
