// What a driver need not offer.
#include "bmc/bmc.h"

namespace muster::bmc {

Async<std::vector<LogEntry>> Bmc::eventLog(std::size_t) {
  co_return fail(ErrorCode::NotFound, address() + " keeps no system event log");
}

Async<void> Bmc::newSession() { co_return Result<void>(); }

Async<void> Bmc::acCycle() { co_return fail(ErrorCode::NotFound, address() + " offers no full power cycle"); }

}  // namespace muster::bmc
