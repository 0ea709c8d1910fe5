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

Async<std::vector<BackgroundCopy>> Bmc::backgroundCopies() { co_return std::vector<BackgroundCopy>(); }

Async<void> Bmc::commitImage(std::string component) { co_return fail(ErrorCode::NotFound, component + " needs no commit"); }

Async<std::vector<SensorReading>> Bmc::sensors() { co_return fail(ErrorCode::NotFound, address() + " shows no sensors"); }

Async<std::map<std::string, std::string>> Bmc::biosAttributes() { co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes"); }

Async<std::map<std::string, std::string>> Bmc::stagedBiosAttributes() { co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes"); }

Async<void> Bmc::stageBios(std::map<std::string, std::string>) { co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes"); }

}  // namespace muster::bmc
