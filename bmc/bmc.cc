// What a driver need not offer.
#include "bmc/bmc.h"

namespace muster::bmc {

Async<std::vector<LogEntry>> Bmc::eventLog(std::size_t) {
  co_return fail(ErrorCode::NotFound, address() + " keeps no system event log");
}

Async<Survey> Bmc::survey() {
  auto read = system();
  CO_TRY(seen, co_await std::move(read));
  Survey survey;
  survey.system = std::move(seen);
  co_return survey;
}

Async<void> Bmc::newSession() { co_return Result<void>(); }

Async<void> Bmc::acCycle() { co_return fail(ErrorCode::NotFound, address() + " offers no full power cycle"); }

}  // namespace muster::bmc
