// SPDX-License-Identifier: Apache-2.0
// Restarts of a node by its BMC, and the wait until its agent calls again. A new controller looks
// who calls, and restarts a node (again) only when nobody does. What it finds under way in the boot
// log gets all the time that a boot may take, counted from its beginning. A machine that is on and
// silent may be writing its disk for an earlier controller, so its power is cut only after a wait.
// Limits follow the place (base/limits.h), but for kRamCallBack.
#pragma once

#include "base/ids.h"
#include "bmc/bmc.h"
#include "gateway/agent_gateway.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/phase.h"
#include "provision/boot_log.h"
#include "provision/netboot/netboot.h"
#include "provision/virtual_cds.h"

#include <functional>
#include <map>
#include <optional>

namespace muster::provision {

inline constexpr std::chrono::seconds kBootLimit{600};  ///< from power-on to the agent's first call
inline constexpr std::chrono::seconds kCallBack{
    45};  ///< a live agent has called a new controller by then, if the network is well
inline constexpr std::chrono::seconds kRamCallBack{
    12};  ///< … and one in a RAM OS that writes nothing: being wrong costs one more start
inline constexpr int kMaxBoots = 2;  ///< tries for one stage
inline constexpr std::chrono::milliseconds kLookSoon{250}, kLookAgain{2000};

/// Whether muster, or one before it, has started this machine into the RAM OS, and it may still
/// come from there. Unknown counts as no.
bool isOnItsWayIntoRam(BootLog& log, const NodeName& node, const Clock& clock);

class Restarts {
 public:
  Restarts(
      bmc::BmcFleet& bmcs, gateway::AgentGateway& agents, Netboot& netboot, Clock& clock,
      std::function<void(const NodeName&)> boot_ended = [](const NodeName&) {},
      BootLog* boots = nullptr)
      : bmcs_(bmcs),
        agents_(agents),
        netboot_(netboot),
        clock_(clock),
        boot_ended_(std::move(boot_ended)),
        boot_log_(boots),
        cds_(bmcs, netboot, boots),
        born_(clock.steady()) {}

  /// Has the intent begun its work on the node (its operation is recorded)? Then a machine that is
  /// on and silent gets kBootLimit before its power is cut: it may be writing, or starting what was
  /// written. Else it gets kCallBack, or kRamCallBack.
  enum class Work { None, Begun };

  /// Drives the node into the RAM OS. nullopt: its agent is there; else what is waited for.
  /// Errors: Timeout when it did not come after kMaxBoots boots
  /// `live`: digest of the live image on whose kernel it must run; empty: any will do.
  Async<std::optional<lifecycle::Again>> intoRam(NodeName node, Work work, std::string live = {});
  /// Drives the node into the system on its disk, likewise.
  Async<std::optional<lifecycle::Again>> intoDisk(NodeName node, Work work);
  /// The RAM OS has called: nobody boots into it any more by mistake, and its boot medium, if it
  /// came by one, is taken out. What the BMC refuses stays written down.
  Task<void> arrived(NodeName node);
  /// A boot medium of muster's that is still in the node's virtual CD, as far as is written down.
  Result<std::optional<InsertedMedium>> mediumLeft(const NodeName& node) const {
    return cds_.left(node);
  }
  /// Takes it out. nullopt: it is out; else what is waited for, because a boot needs it still.
  Async<std::optional<lifecycle::Again>> removeMedium(NodeName node);
  /// The stage is over; a later one starts to count anew.
  void forget(const NodeName& node) {
    const auto stage = stages_.extract(node);
    if (stage.empty() || stage.mapped().boots == 0) return;
    if (boot_log_) (void)boot_log_->ended(node);  // what stays there costs a wait, nothing else
    boot_ended_(node);
  }

 private:
  /// One wait for one mode.
  struct Stage {
    wire::Mode mode = wire::Mode::Ram;
    std::chrono::steady_clock::time_point since;  ///< of the last restart, or of the first look
    int boots = 0;
    std::string old_boot;  ///< of the agent that was there before the restart
    bool found = false;    ///< an earlier controller has begun the last boot
  };

  Async<std::optional<lifecycle::Again>> drive(NodeName node, wire::Mode mode, Work work,
                                               std::string live);
  Async<bool> mustRestart(NodeName node, Stage stage, std::chrono::milliseconds limit);
  Async<void> restart(NodeName node, wire::Mode mode);
  Async<void> startInto(NodeName node, wire::Mode mode, bmc::BootTarget target);
  Task<void> takeOut(NodeName node);
  Stage& stageOf(const NodeName& node, wire::Mode mode);
  Result<void> recall(const NodeName& node, Stage& stage);

  bmc::BmcFleet& bmcs_;
  gateway::AgentGateway& agents_;
  Netboot& netboot_;
  Clock& clock_;
  std::function<void(const NodeName&)> boot_ended_;
  BootLog* boot_log_;  ///< nullptr: nothing is known of earlier controllers
  VirtualCds cds_;
  std::chrono::steady_clock::time_point born_;  ///< agents have been able to call since then
  std::map<NodeName, Stage> stages_;
};

}  // namespace muster::provision
