// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/power.h"

#include "base/async/poll.h"
#include "base/limits.h"

#include <algorithm>

namespace muster::bmc {

using namespace std::chrono_literals;

namespace {

constexpr auto kPowerLimit = 120s;
constexpr auto kGracefulLimit = 180s;
constexpr auto kPowerFirstPoll = 100ms, kPowerPoll = 1000ms;
constexpr auto kPowerRepeat =
    10s;  ///< iDRAC10 refuses On for some seconds after off (ironic power.py: 6 × 10 s)
constexpr int kMaxPowerRepeats = 6;

std::string_view toString(PowerState state) {
  return state == PowerState::On ? "On" : state == PowerState::Off ? "Off" : "unknown";
}

std::string resetType(PowerAction action) {
  switch (action) {
    case PowerAction::On:
      return "On";
    case PowerAction::ForceOff:
      return "ForceOff";
    case PowerAction::GracefulShutdown:
      return "GracefulShutdown";
    case PowerAction::ForceRestart:
      return "ForceRestart";
  }
  return "On";
}

}  // namespace

// A restart is off and on, each verified: after Redfish's ForceRestart the state is On as before,
// which proves nothing (DGX H100 answers success and does not restart, iLO maps it to a graceful
// one).
Async<void> RedfishPower::power(PowerAction action) {
  if (action != PowerAction::ForceRestart) {
    const auto wanted = action == PowerAction::On ? PowerState::On : PowerState::Off;
    CO_TRY_OK(
        co_await reach(wanted, resetType(action),
                       action == PowerAction::GracefulShutdown ? kGracefulLimit : kPowerLimit));
    co_return Result<void>();
  }
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(seen, co_await reach(PowerState::Off, resetType(PowerAction::ForceOff), kPowerLimit));
  co_await resources_.clock().sleep(at.quirks.off_on_pause);
  CO_TRY_OK(
      co_await reach(PowerState::On, resetType(PowerAction::On), kPowerLimit, std::move(seen)));
  co_return Result<void>();
}

/// Nothing can be read that would prove it: a host that was hung stays On.
Async<void> RedfishPower::sendNmi() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(system, co_await resources_.session().get(at.system));
  if (powerStateOf(system.body) == PowerState::Off)
    co_return fail(ErrorCode::Conflict,
                   "the machine behind " + address() + " is off, so it cannot take an interrupt");
  CO_TRY(offered, co_await resources_.offeredResets(system.body));
  if (std::find(offered.begin(), offered.end(), "Nmi") == offered.end())
    co_return fail(ErrorCode::NotFound, fmt::format("{} offers no Nmi; it offers {}", at.system,
                                                    fmt::join(offered, ", ")));
  auto target = linkAt(system.body, "Actions/#ComputerSystem.Reset/target");
  if (target.empty()) target = at.system + "/Actions/ComputerSystem.Reset";
  Json body = Json::object();
  body["ResetType"] = "Nmi";
  CO_TRY_OK(co_await resources_.session().post(std::move(target), std::move(body)));
  co_return Result<void>();
}

Async<SystemSnapshot> RedfishPower::reach(PowerState wanted, std::string type,
                                          std::chrono::seconds limit, SystemSnapshot seen) {
  CO_TRY(at, co_await resources_.uris());
  if (!seen) {
    CO_TRY(system, co_await resources_.cachedSystem());
    seen = std::move(system);
  }
  if (powerStateOf(seen->body) == wanted) co_return seen;
  const Json* action = find(seen->body, "Actions/#ComputerSystem.Reset");
  if (!action) co_return fail(ErrorCode::NotFound, at.system + " offers no reset action");
  CO_TRY(allowed, co_await resources_.allowedResets(*action));
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), type) == allowed.end()) {
    co_return fail(ErrorCode::InvalidInput, fmt::format("{} does not offer {}; it offers {}",
                                                        at.system, type, fmt::join(allowed, ", ")));
  }
  std::string target = linkAt(*action, "target");
  if (target.empty()) target = at.system + "/Actions/ComputerSystem.Reset";

  const auto until = resources_.clock().steady() + limitHere(resources_.clock(), limit);
  for (int repeat = 0;; ++repeat) {
    Json body = Json::object();
    body["ResetType"] = type;
    auto answer = co_await resources_.session().post(target, body);
    if (answer) break;
    // 409 is "already so" for one vendor and "not yet" for another; a lost answer may have worked.
    // The state decides.
    auto now = co_await resources_.readSystem();
    if (now && powerStateOf((*now)->body) == wanted) co_return std::move(*now);
    const bool may_repeat =
        answer.error().code() == ErrorCode::Conflict || answer.error().canRetry();
    if (!may_repeat || repeat >= kMaxPowerRepeats ||
        resources_.clock().steady() + kPowerRepeat > until)
      co_return fail(std::move(answer.error()));
    co_await resources_.clock().sleep(kPowerRepeat);
  }
  co_return co_await waitForPower(wanted, until, type);
}

Async<SystemSnapshot> RedfishPower::waitForPower(PowerState wanted,
                                                 std::chrono::steady_clock::time_point until,
                                                 std::string after) {
  std::string last = "nothing";
  const auto begun = resources_.clock().steady();
  while (true) {
    auto now = co_await resources_.readSystem();
    const auto state = now ? powerStateOf((*now)->body) : PowerState::Unknown;
    if (state == wanted) co_return std::move(*now);
    if (!now && !now.error().canRetry()) co_return fail(std::move(now.error()));
    last = now ? std::string(toString(state)) : now.error().str();
    if (resources_.clock().steady() >= until) break;
    co_await resources_.clock().sleep(
        nextPollDelay(resources_.clock().steady() - begun, kPowerFirstPoll, kPowerPoll));
  }
  co_return fail(ErrorCode::Timeout,
                 fmt::format("{} accepted {} but its power state did not become {}; last seen: {}",
                             address(), after, toString(wanted), last));
}

// ---- standby power: the standard's reset type where a BMC names it, else the vendor's own way

Async<void> RedfishPower::acCycle() {
  CO_TRY(at, co_await resources_.uris());
  CO_TRY(system, co_await resources_.session().get(at.system));
  CO_TRY(allowed, co_await resources_.offeredResets(system.body));
  AcCycleMethod method = at.quirks.ac_cycle;
  // Only where the BMC names it: a reset type that it does not know would be refused by one and
  // taken for another by the next.
  if (std::find(allowed.begin(), allowed.end(), kFullPowerCycle) != allowed.end())
    method = {AcCycleOwner::System, "", "Actions/#ComputerSystem.Reset", kFullPowerCycle};
  AcCycleServices services{resources_, bios_, reset_,
                           [this] { return power(PowerAction::ForceRestart); }};
  const auto strategy = makeAcCycleStrategy(method, std::move(services));
  if (!strategy)
    co_return fail(ErrorCode::NotFound,
                   "the BMC at " + address() +
                       " offers no full power cycle; pull the cords, or switch the PDU's outlets");
  if (method.host_off) {
    CO_TRY_OK(co_await reach(PowerState::Off, "ForceOff", kPowerLimit));
  }
  co_return co_await strategy->cut();
}

}  // namespace muster::bmc
