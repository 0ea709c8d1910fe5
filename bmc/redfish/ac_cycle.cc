// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/ac_cycle.h"

#include <map>

namespace muster::bmc {
namespace {

constexpr std::chrono::seconds kPostLimit =
    std::chrono::minutes(20);  ///< until POST has carried out a BIOS job; the cut follows it

/// An action of the system or of a chassis.
class CutByAction final : public AcCycleStrategy {
 public:
  CutByAction(AcCycleMethod method, AcCycleServices services)
      : method_(method), services_(std::move(services)) {}
  Async<void> cut() override {
    CO_TRY(at, co_await services_.resources.uris());
    const auto owner = method_.owner == AcCycleOwner::System
                           ? at.system
                           : at.chassis + "/" + std::string(method_.chassis);
    CO_TRY(resource, co_await services_.resources.session().get(owner));
    auto target = linkAt(resource.body, std::string(method_.action) + "/target");
    if (target.empty() && method_.value == kFullPowerCycle)
      target = owner + "/Actions/ComputerSystem.Reset";
    if (target.empty())
      co_return fail(
          ErrorCode::NotFound,
          fmt::format("{} does not offer {}; pull the cords, or switch the PDU's outlets", owner,
                      method_.action));
    CO_TRY(manager, co_await services_.resources.session().get(at.manager));
    co_return co_await services_.reset.resetThrough(std::move(target), std::string(method_.value),
                                                    at.manager,
                                                    textAt(manager.body, "LastResetTime"));
  }

 private:
  AcCycleMethod method_;
  AcCycleServices services_;
};

/// iDRAC: the next restart carries the attribute out; the BMC itself goes with it.
class CutByBiosAttribute final : public AcCycleStrategy {
 public:
  CutByBiosAttribute(AcCycleMethod method, AcCycleServices services)
      : method_(method), services_(std::move(services)) {}
  Async<void> cut() override {
    CO_TRY(at, co_await services_.resources.uris());
    std::map<std::string, std::string> wanted;
    wanted[std::string(method_.action)] = std::string(method_.value);
    CO_TRY_OK(co_await services_.bios.stageBios(std::move(wanted)));
    CO_TRY(manager, co_await services_.resources.session().get(at.manager));
    const auto before = textAt(manager.body, "LastResetTime");
    const auto session = services_.resources.session().token();
    auto restarted = co_await services_.restart_host();
    if (!restarted && !restarted.error().canRetry()) co_return fail(std::move(restarted.error()));
    services_.resources.forget();
    if (services_.resources.session().token() ==
        session) {  // else it was away while the power was followed, and has forgotten the session
      CO_TRY_OK(co_await services_.reset.waitForReset(at.manager, before, kPostLimit));
    }
    co_return co_await services_.reset.stabilize();
  }

 private:
  AcCycleMethod method_;
  AcCycleServices services_;
};

}  // namespace

std::unique_ptr<AcCycleStrategy> makeAcCycleStrategy(AcCycleMethod method,
                                                     AcCycleServices services) {
  switch (method.owner) {
    case AcCycleOwner::None:
      return nullptr;
    case AcCycleOwner::System:
    case AcCycleOwner::Chassis:
      return std::make_unique<CutByAction>(method, std::move(services));
    case AcCycleOwner::BiosAttribute:
      return std::make_unique<CutByBiosAttribute>(method, std::move(services));
  }
  return nullptr;
}

}  // namespace muster::bmc
