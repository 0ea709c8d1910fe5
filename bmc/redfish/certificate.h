// SPDX-License-Identifier: Apache-2.0
// The certificate of a BMC's web server: one strategy a way to make its request and to install it.
#pragma once

#include "bmc/redfish/resources.h"

#include <memory>
#include <string>

namespace muster::bmc {

class CertificateStrategy {
 public:
  virtual ~CertificateStrategy() = default;
  virtual bool makesRequests() const = 0;
  virtual bool takesCertificates() const = 0;
  /// For the key that the BMC makes with it: PEM, as the BMC gives it.
  virtual Async<std::string> request(CertificateSubject subject) = 0;
  /// Any status is an answer.
  virtual Async<RedfishReply> install(std::string pem) = 0;
};

/// By what the BMC offers: HPE's HttpsCert, the CertificateService, or its certificate's own
/// Certificate.Rekey (Supermicro, AMI). Errors: NotFound (none of them)
Async<std::unique_ptr<CertificateStrategy>> findCertificate(RedfishResources& resources);

}  // namespace muster::bmc
