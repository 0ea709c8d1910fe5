// SPDX-License-Identifier: Apache-2.0
// BMCs that no node declares: the same session, memory and arbiter as a fleet's.
#include "bmc/arbiter.h"
#include "bmc/redfish/redfish_bmc.h"
#include "bmc/trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"
#include "inventory/model/profile.h"

namespace muster::bmc {
namespace {

using namespace std::chrono_literals;

constexpr auto kCloseLimit = 4s;

class RedfishUndeclaredBmc final : public UndeclaredBmc {
 public:
  RedfishUndeclaredBmc(UndeclaredBmcOptions who, lifecycle::Store& store, Clock& clock,
                       Workers& workers, HttpClientFactory make_client)
      : clock_(clock), images_(workers) {
    RedfishSession::Options options;
    options.node = who.key;
    options.base_url = who.url;
    options.username = who.credential->username;
    options.first_pin = who.certificate;
    if (who.approved) options.declared.pin = who.certificate;
    options.password = [ref = who.credential->password] { return ref.read(); };
    auto driver = std::make_unique<RedfishBmc>(
        std::make_unique<RedfishSession>(std::move(options), store, clock, std::move(make_client)),
        inventory::BootMode::Uefi, clock, images_);
    redfish_ = driver.get();
    bmc_ = arbitrate(std::move(driver), clock);
  }
  Bmc& bmc() override { return *bmc_; }
  Async<void> close() override {
    auto end = redfish_->logout();
    co_return co_await withDeadline<void>(clock_, kCloseLimit, "logging out of " + bmc_->address(),
                                          std::move(end));
  }

 private:
  Clock& clock_;
  FirmwareImages images_;
  RedfishBmc* redfish_ = nullptr;  ///< owned by the arbiter
  std::unique_ptr<Bmc> bmc_;
};

}  // namespace

std::unique_ptr<UndeclaredBmc> makeUndeclaredBmc(UndeclaredBmcOptions who, lifecycle::Store& store,
                                                 Clock& clock, Workers& workers,
                                                 HttpClientFactory make_client) {
  return std::make_unique<RedfishUndeclaredBmc>(std::move(who), store, clock, workers,
                                                std::move(make_client));
}

Result<bool> isRefused(lifecycle::Store& store, const UndeclaredBmcOptions& who) {
  TRY(password, who.credential->password.read());
  const auto may = TrustMemory(store, who.key).mayTry(who.url, who.credential->username, password);
  if (may) return false;
  if (may.error().code() == ErrorCode::Denied) return true;
  return fail(may.error());
}

Result<void> inheritPin(lifecycle::Store& store, const NodeName& undeclared, const NodeName& node) {
  TRY(pin, TrustMemory(store, undeclared).pin());
  if (!pin) return {};
  TRY(before, TrustMemory(store, node).pin());
  if (before)
    return {};  // a BMC that the node has talked to already is not pinned anew behind its back
  return TrustMemory(store, node).setPin(*pin);
}

}  // namespace muster::bmc
