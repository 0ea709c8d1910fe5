// SPDX-License-Identifier: Apache-2.0
// What a gate asks a node's BMC (group "bmc"): whether its event logs have new entries of weight
// since the gate began (`bmc.log`), and how its power supplies are (`bmc.power`).
//
// Store value gate.bmc.NODE.GATE: the intent, and where the logs stood when it began, or why nobody
// knows (JSON). A controller that dies in between does not begin anew: what was logged under the
// load counts.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "bmc/roles.h"
#include "bmc/sel_cursor.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/phase.h"
#include "lifecycle/store/store.h"
#include "wire/messages.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

inline constexpr std::string_view kBmcLogCheck = "bmc.log", kBmcPowerCheck = "bmc.power";
inline constexpr std::string_view kBmcGroup = "bmc";

/// The node's BMC, as cli wires it. Errors: as bmc::Events and bmc::Sensors; NotFound where none is
/// declared
struct BmcView {
  std::function<Async<bmc::EventLog>(NodeName node)> event_log = {};
  std::function<Async<bmc::PowerSupplies>(NodeName node)> power_supplies = {};
};

/// New entries: Critical ones fail, Warning ones where `warnings_fail`. Pure.
wire::CheckResult evaluateBmcLog(const std::vector<bmc::EventLogCursor::Kept>& news,
                                 bool warnings_fail);
/// Fails for a supply that is not well, an empty place (unless `expected` good ones are there), a
/// group that is not redundant. NoData when the BMC says nothing of how they are. Pure.
wire::CheckResult evaluatePowerSupplies(const bmc::PowerSupplies& seen,
                                        std::optional<std::size_t> expected);

class BmcGate {
 public:
  BmcGate(lifecycle::Store& store, const Clock& clock, BmcView view)
      : store_(store), clock_(clock), view_(std::move(view)) {}

  /// Before the load. What to wait for; nullopt: where the logs stand is written down, or cannot be
  /// known, which the end says. Errors: those of the store
  Async<std::optional<lifecycle::Again>> begin(NodeName node, std::string gate, std::string intent);
  struct Answer {
    std::optional<lifecycle::Again> wait;
    std::vector<wire::CheckResult> results;           ///< one of each check, unless it waits
    std::vector<bmc::EventLogCursor::Kept> warnings;  ///< new ones that do not fail the gate
  };
  /// After it.
  Async<Answer> end(inventory::Node node, inventory::Gate gate, std::string intent);
  void forget(const std::string& intent) { tries_.erase(intent); }

 private:
  /// Of one gate of one node.
  struct Start {
    std::string intent, cursor;
    std::string unknown;  ///< why the logs could not be read then; "": they were
  };
  Result<std::optional<Start>> known(const std::string& key, const std::string& intent) const;
  Result<void> keep(const std::string& key, const Start& start);
  /// Another try, or nothing: it has had enough of them.
  std::optional<lifecycle::Again> again(const std::string& intent, const Error& why);

  lifecycle::Store& store_;
  const Clock& clock_;
  const BmcView view_;
  std::map<std::string, int> tries_;  ///< by intent, since the last that was answered
};

}  // namespace muster::validate
