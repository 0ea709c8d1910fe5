// SPDX-License-Identifier: Apache-2.0
// How the BMC and muster authenticate each other: the account's password, the BMC's certificate.
// Both are changed in two phases: what will be is remembered first, then ordered, then proven; a
// process that dies in between finds on the BMC which of the two holds.
#pragma once

#include "bmc/redfish/bmc_reset.h"
#include "bmc/redfish/certificate.h"
#include "bmc/redfish/resources.h"

#include <memory>
#include <string>

namespace muster::bmc {

class RedfishAccounts final : public Accounts {
 public:
  RedfishAccounts(RedfishResources& resources, BmcReset& reset)
      : resources_(resources), reset_(reset) {}

  std::string address() const override { return resources_.address(); }
  Async<void> rotatePassword() override;
  Async<std::string> certificateRequest(CertificateSubject subject) override;
  Async<void> installCertificate(std::string pem) override;

 private:
  Async<Member> ownAccount();
  Async<void> changePassword(std::string account, Secret next);
  Result<void> checkCertificate(const std::string& pem) const;
  /// Whether it is shown now; it is the pin then.
  Async<bool> waitForCertificate(std::string fingerprint);

  RedfishResources& resources_;
  BmcReset& reset_;
};

}  // namespace muster::bmc
