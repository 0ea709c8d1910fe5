// SPDX-License-Identifier: Apache-2.0
// Accounts and roles of a virtual BMC, and who may do what. Source: DSP0266 13 (privilege model),
// DSP2046 ManagerAccount and Role, the privilege registry Redfish_1.3.0
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

/// Who sent a request.
struct Caller {
  std::string account;  ///< id; "": nobody known
  std::string session;  ///< id; "": Basic
};

class AccountService {
 public:
  explicit AccountService(BmcRuntime& bmc) : bmc_(bmc) {}

  std::optional<nlohmann::json> resource(const std::string& path) const;
  /// Whether the caller's role allows it.
  bool permits(const Caller& caller, const std::string& method, const std::string& path) const;
  bool isAccount(const std::string& path) const;

  io::ServerResponse create(const io::ServerRequest& request);
  io::ServerResponse patch(const io::ServerRequest& request, const std::string& path,
                           const Caller& caller);
  io::ServerResponse remove(const std::string& path);

 private:
  nlohmann::json accountResource(const std::string& id) const;
  void keep();

  BmcRuntime& bmc_;
};

}  // namespace muster::lab::vbmc
