#include "firmware/shut_down.h"

#include "base/async/deadline.h"

namespace muster::firmware {

Async<void> shutDown(bmc::Bmc& bmc, Clock& clock) {
  auto ask = bmc.power(bmc::PowerAction::GracefulShutdown);
  auto bounded = withDeadline<void>(clock, kShutdownLimit, "shutting down", std::move(ask));
  if (auto down = co_await std::move(bounded); down) co_return down;
  auto force = bmc.power(bmc::PowerAction::ForceOff);
  co_return co_await std::move(force);
}

}  // namespace muster::firmware
