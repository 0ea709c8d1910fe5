// SPDX-License-Identifier: Apache-2.0
// A Bmc put together from roles, and one that stands before another Bmc and fills some roles
// itself.
#pragma once

#include "bmc/bmc.h"

namespace muster::bmc {

/// The roles of one BMC, each by whoever fills it. All outlive whoever uses them.
struct Roles {
  Power& power;
  Boot& boot;
  Bios& bios;
  Accounts& accounts;
  Inventory& inventory;
  Updates& updates;
  Sensors& sensors;
  Events& events;
  Console& console;
  Raid& raid;
};
inline Roles rolesOf(Bmc& bmc) { return {bmc, bmc, bmc, bmc, bmc, bmc, bmc, bmc, bmc, bmc}; }

class CompositeBmc : public Bmc {
 public:
  explicit CompositeBmc(Roles roles) : roles_(roles) {}

  std::string address() const override { return roles_.power.address(); }
  Async<SystemInfo> system() override { return roles_.inventory.system(); }
  Async<void> power(PowerAction action) override { return roles_.power.power(action); }
  Async<void> bootOnce(BootTarget target) override { return roles_.boot.bootOnce(target); }
  Async<std::vector<FirmwareItem>> firmware() override { return roles_.inventory.firmware(); }
  Async<std::string> startUpdate(FirmwareUpdate update) override {
    return roles_.updates.startUpdate(std::move(update));
  }
  Async<TaskStatus> task(std::string uri) override { return roles_.updates.task(std::move(uri)); }
  Async<TaskList> tasks() override { return roles_.updates.tasks(); }
  Async<void> resetBmc() override { return roles_.power.resetBmc(); }
  Async<EventLog> eventLog(std::size_t limit) override { return roles_.events.eventLog(limit); }
  Async<Survey> survey() override { return roles_.inventory.survey(); }
  Async<SerialConsoleEndpoint> serialConsole() override { return roles_.console.serialConsole(); }
  Async<void> acCycle() override { return roles_.power.acCycle(); }
  Async<void> restorePower(WallTime cut_at) override { return roles_.power.restorePower(cut_at); }
  Async<void> sendNmi() override { return roles_.power.sendNmi(); }
  Async<bool> locateLed() override { return roles_.power.locateLed(); }
  Async<void> setLocateLed(bool on) override { return roles_.power.setLocateLed(on); }
  Async<std::vector<VirtualMedium>> virtualMedia() override { return roles_.boot.virtualMedia(); }
  Async<VirtualMedium> insertMedia(std::vector<std::string> urls) override {
    return roles_.boot.insertMedia(std::move(urls));
  }
  Async<void> ejectMedia(std::string drive) override {
    return roles_.boot.ejectMedia(std::move(drive));
  }
  Async<BootOrder> bootOrder() override { return roles_.boot.bootOrder(); }
  Async<void> setBootOrder(std::vector<std::string> references) override {
    return roles_.boot.setBootOrder(std::move(references));
  }
  Async<void> boot(BootOverride what) override { return roles_.boot.boot(std::move(what)); }
  Async<void> rotatePassword() override { return roles_.accounts.rotatePassword(); }
  Async<std::string> certificateRequest(CertificateSubject subject) override {
    return roles_.accounts.certificateRequest(std::move(subject));
  }
  Async<void> installCertificate(std::string pem) override {
    return roles_.accounts.installCertificate(std::move(pem));
  }
  Async<std::vector<BackgroundCopy>> backgroundCopies() override {
    return roles_.inventory.backgroundCopies();
  }
  Async<void> commitImage(std::string component) override {
    return roles_.updates.commitImage(std::move(component));
  }
  Async<std::string> previousImage(std::string component) override {
    return roles_.updates.previousImage(std::move(component));
  }
  Async<void> rollBack(std::string component) override {
    return roles_.updates.rollBack(std::move(component));
  }
  Async<std::vector<SensorReading>> sensors() override { return roles_.sensors.sensors(); }
  Async<PowerSupplies> powerSupplies() override { return roles_.sensors.powerSupplies(); }
  Async<void> cancelStaged(std::string component, std::size_t waiting) override {
    return roles_.updates.cancelStaged(std::move(component), waiting);
  }
  Async<bool> sharesPackage(std::string component, std::string other) override {
    return roles_.updates.sharesPackage(std::move(component), std::move(other));
  }
  Async<std::vector<DeviceState>> devicesNotReady() override {
    return roles_.inventory.devicesNotReady();
  }
  Async<std::map<std::string, std::string>> biosAttributes() override {
    return roles_.bios.biosAttributes();
  }
  Async<std::map<std::string, std::string>> stagedBiosAttributes() override {
    return roles_.bios.stagedBiosAttributes();
  }
  Async<void> stageBios(std::map<std::string, std::string> values) override {
    return roles_.bios.stageBios(std::move(values));
  }
  Async<std::vector<RaidController>> raidControllers() override {
    return roles_.raid.raidControllers();
  }
  Async<RaidOrder> createVolume(VolumeOrder order) override {
    return roles_.raid.createVolume(std::move(order));
  }
  Async<RaidOrder> deleteVolume(std::string uri) override {
    return roles_.raid.deleteVolume(std::move(uri));
  }

 private:
  Roles roles_;
};

/// What stands before a driver overrides only what it fills itself.
class ForwardingBmc : public CompositeBmc {
 public:
  /// `inner` outlives it.
  explicit ForwardingBmc(Bmc& inner) : CompositeBmc(rolesOf(inner)), inner_(inner) {}
  Async<void> newSession() override { return inner_.newSession(); }

 protected:
  Bmc& inner_;
};

}  // namespace muster::bmc
