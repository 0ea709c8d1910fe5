// SPDX-License-Identifier: Apache-2.0
// A machine in memory behind a virtual BMC.
#pragma once

#include "lab/vbmc/machine.h"

#include <vector>

namespace muster::lab::vbmc {

class FakeMachine final : public Machine {
 public:
  Async<bool> isOn() override { co_return on; }
  Async<void> start(StartOptions options) override {
    if (refuse_start) co_return fail(ErrorCode::Unavailable, "the machine does not start");
    on = true;
    starts.push_back(std::move(options));
    co_return Result<void>();
  }
  Async<void> stop() override {
    on = false;
    co_return Result<void>();
  }
  Async<void> pressButton() override {
    if (obeys_button) on = false;
    co_return Result<void>();
  }
  Async<void> emptyDrive() override {
    ++drives_emptied;
    co_return Result<void>();
  }

  bool on = false;
  int drives_emptied = 0;
  bool obeys_button = true;
  bool refuse_start = false;
  std::vector<StartOptions> starts;
};

}  // namespace muster::lab::vbmc
