// SPDX-License-Identifier: Apache-2.0
// A Bmc that lets another answer: what stands before a driver overrides only what it has to say
// itself.
#pragma once

#include "bmc/shared_package.h"
#include "bmc/staged_images.h"
#include "bmc/startup.h"

namespace muster::bmc {

class ForwardingBmc : public Bmc, public DeviceStates, public StagedImages, public SharedPackages {
 public:
  /// `inner` outlives it.
  explicit ForwardingBmc(Bmc& inner) : inner_(inner) {}

  std::string address() const override { return inner_.address(); }
  Async<SystemInfo> system() override { return inner_.system(); }
  Async<void> power(PowerAction action) override { return inner_.power(action); }
  Async<void> bootOnce(BootTarget target) override { return inner_.bootOnce(target); }
  Async<std::vector<FirmwareItem>> firmware() override { return inner_.firmware(); }
  Async<std::string> startUpdate(FirmwareUpdate update) override {
    return inner_.startUpdate(std::move(update));
  }
  Async<TaskStatus> task(std::string uri) override { return inner_.task(std::move(uri)); }
  Async<TaskList> tasks() override { return inner_.tasks(); }
  Async<void> resetBmc() override { return inner_.resetBmc(); }
  Async<void> newSession() override { return inner_.newSession(); }
  Async<std::vector<LogEntry>> eventLog(std::size_t limit) override {
    return inner_.eventLog(limit);
  }
  Async<Survey> survey() override { return inner_.survey(); }
  Async<SerialConsoleEndpoint> serialConsole() override { return inner_.serialConsole(); }
  Async<void> acCycle() override { return inner_.acCycle(); }
  Async<void> restorePower(WallTime cut_at) override { return inner_.restorePower(cut_at); }
  Async<void> sendNmi() override { return inner_.sendNmi(); }
  Async<void> boot(BootOverride what) override { return inner_.boot(std::move(what)); }
  Async<void> rotatePassword() override { return inner_.rotatePassword(); }
  Async<std::string> certificateRequest(CertificateSubject subject) override {
    return inner_.certificateRequest(std::move(subject));
  }
  Async<void> installCertificate(std::string pem) override {
    return inner_.installCertificate(std::move(pem));
  }
  Async<std::vector<BackgroundCopy>> backgroundCopies() override {
    return inner_.backgroundCopies();
  }
  Async<void> commitImage(std::string component) override {
    return inner_.commitImage(std::move(component));
  }
  Async<std::string> previousImage(std::string component) override {
    return inner_.previousImage(std::move(component));
  }
  Async<void> rollBack(std::string component) override {
    return inner_.rollBack(std::move(component));
  }
  Async<std::vector<SensorReading>> sensors() override { return inner_.sensors(); }
  Async<void> cancelStaged(std::string component, std::size_t waiting) override {
    return bmc::cancelStaged(inner_, std::move(component), waiting);
  }
  Async<bool> sharesPackage(std::string component, std::string other) override {
    return bmc::sharesPackage(inner_, std::move(component), std::move(other));
  }
  Async<std::vector<DeviceState>> notReady() override { return devicesNotReady(inner_); }
  Async<std::map<std::string, std::string>> biosAttributes() override {
    return inner_.biosAttributes();
  }
  Async<std::map<std::string, std::string>> stagedBiosAttributes() override {
    return inner_.stagedBiosAttributes();
  }
  Async<void> stageBios(std::map<std::string, std::string> values) override {
    return inner_.stageBios(std::move(values));
  }

 protected:
  Bmc& inner_;
};

}  // namespace muster::bmc
