// SPDX-License-Identifier: Apache-2.0
// Bringing a machine down before its power is switched: its system is asked first.
#pragma once

#include "base/clock.h"
#include "bmc/bmc.h"

namespace muster::bmc {

inline constexpr std::chrono::seconds kShutdownLimit{
    90};  ///< for the system; then the power is cut

/// Returns when the power is off.
Async<void> shutDown(Bmc& bmc, Clock& clock);

}  // namespace muster::bmc
