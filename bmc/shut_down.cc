// SPDX-License-Identifier: Apache-2.0
#include "bmc/shut_down.h"

#include "base/async/deadline.h"

namespace muster::bmc {

Async<void> shutDown(Bmc& bmc, Clock& clock) {
  auto ask = bmc.power(PowerAction::GracefulShutdown);
  if (auto down =
          co_await withDeadline<void>(clock, kShutdownLimit, "shutting down", std::move(ask));
      down)
    co_return down;
  co_return co_await bmc.power(PowerAction::ForceOff);
}

}  // namespace muster::bmc
