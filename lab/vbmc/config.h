// SPDX-License-Identifier: Apache-2.0
// What muster-vbmc serves: one entry a node. Written by `up`, mode 0600.
#pragma once

#include "lab/domain_xml.h"
#include "lab/vbmc/redfish_service.h"

namespace muster::lab::vbmc {

struct BmcConfig {
  std::string address;
  std::uint16_t port = 443;
  Account account;
  DomainSpec domain;
  std::string vendor_profile = "muster";
};

struct Config {
  std::string libvirt_uri;
  std::filesystem::path folder;  ///< states, certificates, staged images
  std::vector<BmcConfig> bmcs;

  std::string str() const;
  /// Errors: Corrupt
  static Result<Config> parse(std::string_view text);
};

}  // namespace muster::lab::vbmc
