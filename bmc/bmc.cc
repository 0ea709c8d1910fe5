// SPDX-License-Identifier: Apache-2.0
// What a driver need not offer.
#include "bmc/bmc.h"

namespace muster::bmc {

Async<EventLog> Events::eventLog(std::size_t) {
  co_return fail(ErrorCode::NotFound, address() + " keeps no system event log");
}

Async<SerialConsoleEndpoint> Console::serialConsole() {
  co_return fail(ErrorCode::NotFound, address() + " shows no serial console");
}

Async<Survey> Inventory::survey() {
  CO_TRY(seen, co_await system());
  Survey survey;
  survey.system = std::move(seen);
  co_return survey;
}

Async<void> Bmc::newSession() { co_return Result<void>(); }

Async<void> Power::acCycle() {
  co_return fail(ErrorCode::NotFound, address() + " offers no full power cycle");
}

Async<void> Power::restorePower(WallTime) { co_return Result<void>(); }

Async<void> Power::sendNmi() {
  co_return fail(ErrorCode::NotFound, address() + " sends no interrupts");
}

Async<bool> Power::locateLed() {
  co_return fail(ErrorCode::NotFound, address() + " shows no LED to locate the machine by");
}

Async<void> Power::setLocateLed(bool) {
  co_return fail(ErrorCode::NotFound, address() + " shows no LED to locate the machine by");
}

Async<BootOrder> Boot::bootOrder() {
  co_return fail(ErrorCode::NotFound, address() + " does not show the machine's boot order");
}

Async<void> Boot::setBootOrder(std::vector<std::string>) {
  co_return fail(ErrorCode::NotFound, address() + " does not set the machine's boot order");
}

Async<std::vector<VirtualMedium>> Boot::virtualMedia() {
  co_return fail(ErrorCode::NotFound, address() + " offers no virtual CD");
}

Async<VirtualMedium> Boot::insertMedia(std::vector<std::string>) {
  co_return fail(ErrorCode::NotFound, address() + " offers no virtual CD");
}

Async<void> Boot::ejectMedia(std::string) {
  co_return fail(ErrorCode::NotFound, address() + " offers no virtual CD");
}

Async<void> Boot::boot(BootOverride what) {
  if (what.persistent || !what.http_uri.empty())
    co_return fail(ErrorCode::NotFound, address() + " sets the boot device for one boot only");
  co_return co_await bootOnce(what.target);
}

Async<void> Accounts::rotatePassword() {
  co_return fail(ErrorCode::NotFound, address() + " has no password that muster could change");
}

Async<std::string> Accounts::certificateRequest(CertificateSubject) {
  co_return fail(ErrorCode::NotFound, address() + " makes no certificate requests");
}

Async<void> Accounts::installCertificate(std::string) {
  co_return fail(ErrorCode::NotFound, address() + " takes no certificate");
}

Async<std::vector<BackgroundCopy>> Inventory::backgroundCopies() {
  co_return std::vector<BackgroundCopy>();
}

Async<void> Updates::commitImage(std::string component) {
  co_return fail(ErrorCode::NotFound, component + " needs no commit");
}

Async<std::string> Updates::previousImage(std::string component) {
  co_return fail(ErrorCode::NotFound,
                 fmt::format("{} offers no way back for {}", address(), component));
}

Async<void> Updates::rollBack(std::string component) {
  co_return fail(ErrorCode::NotFound,
                 fmt::format("{} offers no way back for {}", address(), component));
}

Async<std::vector<SensorReading>> Sensors::sensors() {
  co_return fail(ErrorCode::NotFound, address() + " shows no sensors");
}

Async<PowerSupplies> Sensors::powerSupplies() {
  co_return fail(ErrorCode::NotFound, address() + " shows no power supplies");
}

Async<std::map<std::string, std::string>> Bios::biosAttributes() {
  co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
}

Async<std::map<std::string, std::string>> Bios::stagedBiosAttributes() {
  co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
}

Async<void> Bios::stageBios(std::map<std::string, std::string>) {
  co_return fail(ErrorCode::NotFound, address() + " shows no BIOS attributes");
}

Async<std::vector<RaidController>> Raid::raidControllers() {
  co_return fail(ErrorCode::NotFound, address() + " shows no RAID controllers");
}

Async<RaidOrder> Raid::createVolume(VolumeOrder) {
  co_return fail(ErrorCode::NotFound, address() + " makes no RAID volumes");
}

Async<RaidOrder> Raid::deleteVolume(std::string) {
  co_return fail(ErrorCode::NotFound, address() + " makes no RAID volumes");
}

Async<std::vector<DeviceState>> Inventory::devicesNotReady() {
  co_return std::vector<DeviceState>();
}

Async<bool> Updates::sharesPackage(std::string, std::string) { co_return false; }

Async<void> Updates::cancelStaged(std::string, std::size_t) {
  co_return fail(ErrorCode::NotFound,
                 address() + " offers no way to take an image back that waits for its activation");
}

}  // namespace muster::bmc
