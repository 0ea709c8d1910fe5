// SPDX-License-Identifier: Apache-2.0
// RoCE v2: one declaration of how lossless traffic is marked, rendered for hosts and switches, and
// whether what they have agrees with it. Pure.
//
// The trap is silent: stock SONiC maps DSCP 26 to a lossy class and pauses 3 and 4, NVIDIA's hosts
// mark with 26. Everything works, until the first congestion. So what each side really has is read
// back into one form and compared.
#pragma once

#include "base/result.h"
#include "fabric/roce/sonic_asic.h"
#include "inventory/model/fwd.h"

#include <map>
#include <set>

namespace muster::fabric {

/// How one port treats marked packets.
struct Marking {
  std::map<int, int> priority_of;  ///< DSCP → priority; absent: 0
  std::set<int> lossless;          ///< priorities with PFC
  bool trusts_dscp = true;
  int mtu = 0;  ///< bytes; 0: not said
};
Marking declaredMarking(const inventory::Roce& roce);

/// A script for a node: iproute2's dcb, trust, PFC, traffic class of the RDMA devices, ECN, MTU.
/// Running it twice changes nothing.
std::string roceHostScript(const inventory::Roce& roce,
                           const std::vector<std::string>& rdma_devices);
/// A fragment of SONiC's config_db.json for these ports, to be loaded over what is there: for ASICs
/// of this family.
std::string roceSonic(const inventory::Roce& roce, const std::vector<std::string>& ports,
                      SonicAsic asic);

/// NVUE writes switches of a feature otherwise since this release of Cumulus Linux.
enum class NvueSince { Cumulus50, Cumulus515 };
/// What follows `nv set qos roce`: "state enabled". (Cumulus Linux 5.15: New and Changed NVUE
/// Commands)
std::string_view nvueRoceOn(NvueSince since);
/// NVUE commands for Cumulus Linux of this release and later.
std::string roceCumulus(const inventory::Roce& roce, NvueSince since);

/// What a port of a SONiC switch does, by its whole config_db. Errors: Corrupt, NotFound (no QoS
/// map at the port)
Result<Marking> sonicMarking(std::string_view config_db, const std::string& port);
/// What a host's interface does: `dcb -j app show`, `dcb -j pfc show`, its MTU. Errors: Corrupt
Result<Marking> hostMarking(std::string_view dcb_app, std::string_view dcb_pfc, int mtu);
/// In words what `found` does otherwise than declared. Empty: they agree.
std::vector<std::string> disagreements(const inventory::Roce& roce, const Marking& found);
/// Those of DSCP, priorities and PFC alone, and that of the MTU.
std::vector<std::string> qosDisagreements(const inventory::Roce& roce, const Marking& found);
std::optional<std::string> mtuDisagreement(const inventory::Roce& roce, const Marking& found);

}  // namespace muster::fabric
