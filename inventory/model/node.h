// SPDX-License-Identifier: Apache-2.0
// Node: one machine, as it is declared.
#pragma once

#include "base/held.h"
#include "base/ids.h"
#include "base/ip_address.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "inventory/model/section.h"

#include <string>

namespace muster::inventory {

struct BmcAddress {
  std::string url;  ///< "https://10.20.250.1"; "libvirt:DOMAIN" for direct use
  std::string username_override;
  std::string credential = {};  ///< empty: the profile's
  Held<BmcTrust> trust = {};    ///< as far as the node says it; bmcTrustOf() says what holds
  Parts<AcceptedIdentity> accept = {};  ///< what identifies the machine where its BMC reports
                                        ///< neither serial nor MAC; all must be found
  std::string system = {};  ///< Id of its ComputerSystem, where several are behind the BMC; empty:
                            ///< the one that can be reset and boots

  /// The machine behind the BMC; two nodes never have the same.
  std::string place() const { return system.empty() ? url : url + "#" + system; }
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
  HeldOptional<NodeLinks> links;         ///< of its further interfaces; nullopt: nothing is said
  SourceRef where;
};

}  // namespace muster::inventory
