// SPDX-License-Identifier: Apache-2.0
// The outlets of a machine, where its BMC cannot cut standby power itself: somebody's command
// switches them.
#pragma once

#include "base/io/process.h"
#include "bmc/bmc.h"

namespace muster::bmc {

struct Outlets {
  std::vector<std::string> off, on;  ///< program and arguments
  std::chrono::seconds time_off{330};
};

/// {node}, {rack} and {unit} become the node's.
std::vector<std::string> argumentsFor(const inventory::Node& node, std::vector<std::string> words);

/// The BMC's own way comes first; the outlets are switched only where it has none. That the power
/// is away is seen by the BMC's silence, that it is back by its answers. `processes` and `clock`
/// outlive it.
std::unique_ptr<Bmc> withPdu(std::unique_ptr<Bmc> bmc, Outlets outlets,
                             io::ProcessRunner& processes, Clock& clock);

}  // namespace muster::bmc
