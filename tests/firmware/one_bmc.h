// SPDX-License-Identifier: Apache-2.0
// A fleet of one BMC, for phases on the emulator.
#pragma once

#include "bmc/arbiter.h"
#include "tests/bmc/redfish_rig.h"
#include "tests/bmc/virtual_bmc.h"
#include "tests/firmware/phase_fixture.h"

namespace muster::firmware {

class OneBmc final : public bmc::BmcFleet {
 public:
  explicit OneBmc(std::unique_ptr<bmc::Bmc> bmc) : bmc_(std::move(bmc)) {}
  bmc::Bmc& at(const NodeName&) override { return *bmc_; }
  Async<void> close() override { co_return Result<void>(); }

 private:
  std::unique_ptr<bmc::Bmc> bmc_;
};

}  // namespace muster::firmware
