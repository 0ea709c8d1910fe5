// SPDX-License-Identifier: Apache-2.0
// Node: one machine, as it is declared.
#pragma once

#include "base/ids.h"
#include "base/result.h"
#include "inventory/model/bmc_trust.h"

#include <string>

namespace muster::inventory {

struct BmcAddress {
  std::string url;  ///< "https://10.20.250.1"; "libvirt:DOMAIN" for direct use
  std::string username_override;
  std::string credential = {};  ///< empty: the profile's
  BmcTrust trust = {};          ///< as far as the node says it; bmcTrustOf() says what holds
};

struct Node {
  NodeName name;
  std::string profile;
  std::string rack;
  int unit = 0;
  Mac mac;       ///< provisioning NIC
  Ipv4 address;  ///< on the provisioning network
  BmcAddress bmc;
  std::string serial;                    ///< expected; empty: learned
  std::string switch_name, switch_port;  ///< where the provisioning NIC is cabled, as LLDP names
                                         ///< both; empty: not declared
  SourceRef where;
};

}  // namespace muster::inventory
