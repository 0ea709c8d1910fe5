// SPDX-License-Identifier: Apache-2.0
#include "firmware/shut_down.h"

#include "base/async/deadline.h"

namespace muster::firmware {

Async<void> shutDown(bmc::Bmc& bmc, Clock& clock) {
  auto ask = bmc.power(bmc::PowerAction::GracefulShutdown);
  if (auto down =
          co_await withDeadline<void>(clock, kShutdownLimit, "shutting down", std::move(ask));
      down)
    co_return down;
  co_return co_await bmc.power(bmc::PowerAction::ForceOff);
}

}  // namespace muster::firmware
