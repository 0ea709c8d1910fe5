// SPDX-License-Identifier: Apache-2.0
// What a virtual BMC shows because of whose it plays: the UpdateService's ways, members of the
// inventory, Jobs, settings, chassis.
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

class VendorResources {
 public:
  explicit VendorResources(const BmcRuntime& bmc) : bmc_(bmc) {}

  /// BIOS, chassis, log, Jobs; nullopt: it is something else, or nothing.
  std::optional<nlohmann::json> resource(const std::string& path) const;
  nlohmann::json updateServiceResource() const;
  nlohmann::json managerResource() const;
  /// `on`: the host is.
  std::optional<nlohmann::json> firmwareMember(const std::string& path, const std::string& id,
                                               bool on) const;

 private:
  std::optional<nlohmann::json> chassisResource(const std::string& path) const;
  nlohmann::json enclosingChassis(const std::string& path) const;
  std::optional<nlohmann::json> adapterResource(const std::string& path) const;
  nlohmann::json biosResource(bool settings) const;

  const BmcRuntime& bmc_;
};

}  // namespace muster::lab::vbmc
