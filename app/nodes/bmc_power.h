// SPDX-License-Identifier: Apache-2.0
// bmc power, bmc boot: what a person does to one machine through its BMC.
#pragma once

#include "app/site/options.h"
#include "bmc/bmc.h"

#include <optional>
#include <string>
#include <string_view>

namespace muster::inventory {
struct Cluster;
}
namespace muster::lifecycle {
class Store;
}

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
  /// Although the inventory asks others to agree, or the window of its pool is closed.
  bool override_inventory = false;
};

struct PowerResult {
  std::string address;  ///< of the BMC
  bmc::PowerState before{};
  /// Nothing: it was only checked.
  std::optional<Result<bmc::PowerState>> after;
};

/// Errors: Denied (the inventory asks others to agree, or the window of its pool is closed: a
/// switch cannot wait), Conflict (somebody works on the node, it may run jobs, or its firmware is
/// written), NotFound (node, its IPMI), InvalidInput (a disruptive command without a reason), those
/// of the BMC
Result<PowerResult> powerNode(const Options& options, const PowerRequest& request,
                              const std::function<void(const std::string&)>& notice);
/// The same beside a server, which has the lock of the state folder: the node is claimed in the
/// store meanwhile, so that nothing else works on it. On any thread. Errors: as powerNode
Result<PowerResult> powerNodeBeside(const Options& options, const PowerRequest& request,
                                    const std::function<void(const std::string&)>& notice);
/// What powerNode refuses before it asks a BMC. Errors: Denied, Conflict, InvalidInput
Result<void> mayPowerNode(lifecycle::Store& store, const inventory::Cluster& cluster,
                          const PowerRequest& request, WallTime now);

struct BootRequest {
  NodeName node;
  bmc::BootOverride boot;
};
/// Errors: NotFound, InvalidInput (a URI without HTTP boot, or none of HTTP), those of the BMC
Result<void> setBootDevice(const Options& options, const BootRequest& request);

/// Which options are tried first. `first`: empty, or "network", "http", "disk", or references
/// divided by commas ("Boot0003,Boot0001"); the others keep their order behind them.
struct BootOrderRequest {
  NodeName node;
  std::string first;
};
struct BootOrderResult {
  bmc::BootOrder order;
  bool changed = false;
};
/// Errors: NotFound (node; no such option, or the BMC shows none), InvalidInput, those of the BMC
Result<BootOrderResult> bootOrder(const Options& options, const BootOrderRequest& request);
/// The same, of the order alone: what `first` puts to its front. Errors: NotFound
Result<std::vector<std::string>> orderWith(const bmc::BootOrder& order, const std::string& first);

/// What is in the machine's virtual CDs, after `insert` was put into one, or all were ejected.
struct MediaRequest {
  NodeName node;
  std::string insert;  ///< URL that the BMC reads; "": nothing
  bool eject = false;
};
/// Whether a BMC could read an image there, and nothing secret is in it: it lands in the journal
/// and on the BMC's page. Errors: InvalidInput
Result<void> checkMediaUrl(std::string_view url);
/// Errors: NotFound (node, no virtual CD), InvalidInput (checkMediaUrl), Conflict (no drive is
/// free), those of the BMC
Result<std::vector<bmc::VirtualMedium>> virtualMedia(const Options& options,
                                                     const MediaRequest& request);

/// Reads the LED by which the machine is found, or sets it. Errors: NotFound, those of the BMC
Result<bool> locateNode(const Options& options, const NodeName& node, std::optional<bool> on);

}  // namespace muster::app
