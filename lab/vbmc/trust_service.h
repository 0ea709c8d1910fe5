// SPDX-License-Identifier: Apache-2.0
// The certificate of a virtual BMC, as it is shown and changed.
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

class TrustService {
 public:
  explicit TrustService(BmcRuntime& bmc) : bmc_(bmc) {}

  std::optional<nlohmann::json> resource(const std::string& path) const;
  /// Nullopt: it is none of this service's actions.
  std::optional<io::ServerResponse> post(const io::ServerRequest& request, const std::string& path);

 private:
  std::optional<nlohmann::json> hpeResource(const std::string& path) const;
  Result<std::string> makeRequest(const std::string& common_name);
  io::ServerResponse generateRequest(const io::ServerRequest& request);
  io::ServerResponse rekey(const io::ServerRequest& request);
  io::ServerResponse generateHpeRequest(const io::ServerRequest& request);
  io::ServerResponse replaceCertificate(const io::ServerRequest& request, const std::string& field);

  BmcRuntime& bmc_;
  Secret requested_key_;         ///< of the last certificate request
  std::string certificate_pem_;  ///< that was installed; "": its own
  std::string hpe_request_;      ///< shows some reads after it was ordered
  mutable int hpe_request_reads_ = 0;
};

}  // namespace muster::lab::vbmc
