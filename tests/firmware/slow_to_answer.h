// SPDX-License-Identifier: Apache-2.0
// A BMC that takes an upload in and keeps its answer back.
#pragma once

#include "base/clock.h"
#include "bmc/composite_bmc.h"

namespace muster::firmware {

/// A BMC whose answer to one upload takes hours.
class SlowToAnswer final : public bmc::ForwardingBmc, public bmc::BmcFleet {
 public:
  SlowToAnswer(bmc::Bmc& inner, Clock& clock) : ForwardingBmc(inner), clock_(clock) {}
  Bmc& at(const NodeName&) override { return *this; }
  Async<void> close() override { co_return Result<void>(); }
  Async<std::string> startUpdate(bmc::FirmwareUpdate update) override {
    const bool slow = update.component == "NIC";
    auto task = co_await inner_.startUpdate(std::move(update));
    co_await clock_.sleep(std::chrono::hours(slow ? 3 : 0));
    co_return task;
  }

 private:
  Clock& clock_;
};

}  // namespace muster::firmware
