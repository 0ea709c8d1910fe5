// SPDX-License-Identifier: Apache-2.0
// A fleet whose consoles are recorded: every start of a machine passes here, so no phase has to
// think of its console.
#include "bmc/composite_bmc.h"
#include "bmc/console/console_recorder.h"

#include <map>

namespace muster::bmc {
namespace {

class ListeningBmc final : public ForwardingBmc {
 public:
  ListeningBmc(Bmc& bmc, NodeName node, Consoles& consoles)
      : ForwardingBmc(bmc), node_(std::move(node)), consoles_(consoles) {}

  Async<void> power(PowerAction action) override {
    if (action == PowerAction::On || action == PowerAction::ForceRestart) {
      co_await consoles_.bootBegins(node_, action == PowerAction::On ? "power on" : "restart");
    }
    co_return co_await inner_.power(action);
  }
  Async<void> acCycle() override {
    co_await consoles_.bootBegins(node_, "power cut and given back");
    co_return co_await inner_.acCycle();
  }
  /// A crash dump, or the words of a panic: what the interrupt is for.
  Async<void> sendNmi() override {
    co_await consoles_.bootBegins(node_, "interrupt (NMI)");
    co_return co_await inner_.sendNmi();
  }

 private:
  NodeName node_;
  Consoles& consoles_;
};

class ListeningFleet final : public BmcFleet {
 public:
  ListeningFleet(std::unique_ptr<BmcFleet> fleet, Consoles& consoles)
      : fleet_(std::move(fleet)), consoles_(consoles) {}
  Bmc& at(const NodeName& node) override {
    auto& slot = bmcs_[node];
    if (!slot) slot = std::make_unique<ListeningBmc>(fleet_->at(node), node, consoles_);
    return *slot;
  }
  Bmc* ipmiOf(const NodeName& node) override { return fleet_->ipmiOf(node); }
  EventSource* eventsOf(const NodeName& node) override { return fleet_->eventsOf(node); }
  Async<void> close() override { return fleet_->close(); }

 private:
  std::unique_ptr<BmcFleet> fleet_;
  Consoles& consoles_;
  std::map<NodeName, std::unique_ptr<Bmc>> bmcs_;
};

}  // namespace

std::unique_ptr<BmcFleet> listenAtBoot(std::unique_ptr<BmcFleet> fleet, Consoles& consoles) {
  return std::make_unique<ListeningFleet>(std::move(fleet), consoles);
}

}  // namespace muster::bmc
