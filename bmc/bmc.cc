// SPDX-License-Identifier: Apache-2.0
// What a driver need not offer.
#include "bmc/bmc.h"

namespace muster::bmc {

Async<std::vector<LogEntry>> Bmc::eventLog(std::size_t) {
  co_return fail(ErrorCode::NotFound, address() + " keeps no system event log");
}

Async<SerialConsoleEndpoint> Bmc::serialConsole() {
  co_return fail(ErrorCode::NotFound, address() + " tells of no serial console");
}

Async<Survey> Bmc::survey() {
  CO_TRY(seen, co_await system());
  Survey survey;
  survey.system = std::move(seen);
  co_return survey;
}

Async<void> Bmc::newSession() { co_return Result<void>(); }

Async<void> Bmc::acCycle() {
  co_return fail(ErrorCode::NotFound, address() + " offers no full power cycle");
}

Async<void> Bmc::restorePower(WallTime) { co_return Result<void>(); }

Async<void> Bmc::sendNmi() {
  co_return fail(ErrorCode::NotFound, address() + " sends no interrupts");
}

Async<void> Bmc::boot(BootOverride what) {
  if (what.persistent || !what.http_uri.empty())
    co_return fail(ErrorCode::NotFound, address() + " sets the boot device for one boot only");
  co_return co_await bootOnce(what.target);
}

Async<void> Bmc::rotatePassword() {
  co_return fail(ErrorCode::NotFound, address() + " has no password that muster could change");
}

Async<std::string> Bmc::certificateRequest(CertificateSubject) {
  co_return fail(ErrorCode::NotFound, address() + " makes no certificate requests");
}

Async<void> Bmc::installCertificate(std::string) {
  co_return fail(ErrorCode::NotFound, address() + " takes no certificate");
}

Async<std::vector<BackgroundCopy>> Bmc::backgroundCopies() {
  co_return std::vector<BackgroundCopy>();
}

Async<void> Bmc::commitImage(std::string component) {
  co_return fail(ErrorCode::NotFound, component + " needs no commit");
}

Async<std::string> Bmc::previousImage(std::string component) {
  co_return fail(ErrorCode::NotFound,
                 fmt::format("{} offers no way back for {}", address(), component));
}

Async<void> Bmc::rollBack(std::string component) {
  co_return fail(ErrorCode::NotFound,
                 fmt::format("{} offers no way back for {}", address(), component));
}

Async<std::vector<SensorReading>> Bmc::sensors() {
  co_return fail(ErrorCode::NotFound, address() + " shows no sensors");
}

Async<std::map<std::string, std::string>> Bmc::biosAttributes() {
  co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
}

Async<std::map<std::string, std::string>> Bmc::stagedBiosAttributes() {
  co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
}

Async<void> Bmc::stageBios(std::map<std::string, std::string>) {
  co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
}

}  // namespace muster::bmc
