// SPDX-License-Identifier: Apache-2.0
// Cutting standby power: the standard's reset type where a BMC names it, else the vendor's own way
// (quirks.cc).
#include "bmc/redfish/redfish_bmc.h"

#include <algorithm>

namespace muster::bmc {
namespace {

constexpr std::string_view kFullPowerCycle =
    "FullPowerCycle";  ///< Redfish ResetType, "as if utility power had been removed and restored"
constexpr std::chrono::seconds kPostLimit =
    std::chrono::minutes(20);  ///< until POST has carried out a BIOS job; the cut follows it

}  // namespace

Async<std::vector<std::string>> RedfishBmc::offeredResets(Json system) {
  const Json* action = find(system, "Actions/#ComputerSystem.Reset");
  if (!action) co_return std::vector<std::string>();
  co_return co_await allowedResets(*action);
}

Async<void> RedfishBmc::acCycle() {
  auto where = places();
  CO_TRY(at, co_await std::move(where));
  CO_TRY(system, co_await session_->get(at.system));
  CO_TRY(allowed, co_await offeredResets(system.body));
  AcCycleMethod way = at.quirks.ac_cycle;
  // Only where the BMC names it: a reset type that it does not know would be refused by one and
  // taken for another by the next.
  if (std::find(allowed.begin(), allowed.end(), kFullPowerCycle) != allowed.end())
    way = {AcCycleOwner::System, "", "Actions/#ComputerSystem.Reset", kFullPowerCycle};
  if (way.owner == AcCycleOwner::None)
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() +
                       " offers no full power cycle; pull the cords, or switch the PDU's outlets");
  if (way.host_off) {
    CO_TRY_OK(co_await reach(PowerState::Off, "ForceOff", std::chrono::seconds(120)));
  }
  co_return co_await (way.owner == AcCycleOwner::BiosAttribute ? cutByBios(at, way)
                                                               : cutByAction(at, way));
}

Async<void> RedfishBmc::cutByAction(Places at, AcCycleMethod way) {
  const auto owner =
      way.owner == AcCycleOwner::System ? at.system : at.chassis + "/" + std::string(way.chassis);
  CO_TRY(resource, co_await session_->get(owner));
  auto target = linkAt(resource.body, std::string(way.action) + "/target");
  if (target.empty() && way.value == kFullPowerCycle)
    target = owner + "/Actions/ComputerSystem.Reset";
  if (target.empty())
    co_return fail(ErrorCode::NotFound,
                   fmt::format("{} does not offer {}; pull the cords, or switch the PDU's outlets",
                               owner, way.action));
  CO_TRY(manager, co_await session_->get(at.manager));
  co_return co_await resetThrough(std::move(target), std::string(way.value), at.manager,
                                  textAt(manager.body, "LastResetTime"));
}

/// iDRAC: the next restart carries the attribute out; the BMC itself goes with it.
Async<void> RedfishBmc::cutByBios(Places at, AcCycleMethod way) {
  std::map<std::string, std::string> wanted;
  wanted[std::string(way.action)] = std::string(way.value);
  CO_TRY_OK(co_await stageBios(std::move(wanted)));
  CO_TRY(manager, co_await session_->get(at.manager));
  const auto before = textAt(manager.body, "LastResetTime");
  const auto session = session_->token();
  auto restarted = co_await power(PowerAction::ForceRestart);
  if (!restarted && !restarted.error().canRetry()) co_return fail(std::move(restarted.error()));
  forgetPlaces();
  if (session_->token() ==
      session) {  // else it was away while the power was followed, and has forgotten the session
    CO_TRY_OK(co_await waitForReset(at.manager, before, kPostLimit));
  }
  co_return co_await stabilize();
}

}  // namespace muster::bmc
