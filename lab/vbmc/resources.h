// SPDX-License-Identifier: Apache-2.0
// What the virtual BMC shows: every resource that GET answers.
#pragma once

#include "lab/vbmc/account_service.h"
#include "lab/vbmc/boot_service.h"
#include "lab/vbmc/event_service.h"
#include "lab/vbmc/media_service.h"
#include "lab/vbmc/storage_service.h"
#include "lab/vbmc/trust_service.h"
#include "lab/vbmc/vendor_resources.h"

namespace muster::lab::vbmc {

nlohmann::json taskResource(const UpdateTask& task);

class Resources {
 public:
  /// Who shows what.
  struct Parts {
    const AccountService& accounts;
    const BootService& boot;
    const MediaService& media;
    const TrustService& trust;
    const EventService& events;
    const StorageService& storage;
  };
  Resources(const BmcRuntime& bmc, Parts parts) : bmc_(bmc), parts_(parts), vendor_(bmc) {}

  /// Nullopt: there is nothing at this path. `on`: the host is.
  std::optional<nlohmann::json> find(const std::string& path, bool on) const;

 private:
  nlohmann::json systemResource(bool on) const;
  std::optional<nlohmann::json> taskAt(const std::string& path) const;
  std::optional<nlohmann::json> deviceAt(const std::string& path) const;
  bool isShown(const UpdateTask& task) const;

  const BmcRuntime& bmc_;
  Parts parts_;
  VendorResources vendor_;
};

}  // namespace muster::lab::vbmc
