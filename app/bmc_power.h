// SPDX-License-Identifier: Apache-2.0
// bmc power, bmc boot: what a person does to one machine through its BMC.
#pragma once

#include "app/options.h"
#include "bmc/bmc.h"

#include <optional>
#include <string>
#include <string_view>

namespace muster::app {

enum class PowerCommand { On, Shutdown, Off, Restart, AcCycle, Nmi, ResetBmc };

struct PowerCommandRow {
  PowerCommand command;
  std::string_view word;  ///< as typed
  bool is_disruptive;     ///< refused while somebody works on the node, or firmware is written
  std::string_view effect;
};
const PowerCommandRow& rowOf(PowerCommand command);
/// Errors: InvalidInput
Result<PowerCommand> parsePowerCommand(std::string_view word);

struct PowerRequest {
  NodeName node;
  PowerCommand command = PowerCommand::On;
  std::string reason;
  bool ipmi = false;       ///< by IPMI, although Redfish does not answer
  bool force = false;      ///< also when the node may be running jobs
  bool confirmed = false;  ///< else a disruptive command is only checked
};

struct PowerResult {
  std::string address;  ///< of the BMC
  bmc::PowerState before{};
  /// Nothing: it was only checked.
  std::optional<Result<bmc::PowerState>> after;
};

/// Errors: Conflict (somebody works on the node, it may run jobs, or its firmware is written),
/// NotFound (node, its IPMI), InvalidInput (a disruptive command without a reason), those of the
/// BMC
Result<PowerResult> powerNode(const Options& options, const PowerRequest& request,
                              const std::function<void(const std::string&)>& notice);

struct BootRequest {
  NodeName node;
  bmc::BootOverride boot;
};
/// Errors: NotFound, InvalidInput (a URI without HTTP boot, or none of HTTP), those of the BMC
Result<void> setBootDevice(const Options& options, const BootRequest& request);

}  // namespace muster::app
