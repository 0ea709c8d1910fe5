// SPDX-License-Identifier: Apache-2.0
// Is this machine what its profile expects? Pure: hardware report × declaration → mismatches,
// facts.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"
#include "inventory/model/node.h"
#include "provision/parts.h"
#include "wire/messages.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

struct Inspection {
  std::vector<Mismatch> mismatches;
  std::vector<std::string> notes;  ///< what could not be evaluated here, and who will
  std::string value(const std::string& digest) const;  ///< "match:DIGEST", or "mismatch: …"
};

/// First 16 hex digits of the SHA-256 over what is expected of this very node.
std::string expectationDigest(const inventory::Node& node, const inventory::Profile& profile);

/// What else is known when a report is evaluated.
struct InspectionContext {
  const std::vector<inventory::Node>* nodes = nullptr;  ///< all of them, to name whose cable it is
  const IdentityIndex* identity_index = nullptr;        ///< of them, to tell a mix-up
  bool listened = false;  ///< the agent has listened to LLDP for this report
  bool diskless = false;  ///< its image runs in memory: disks do not matter
};
Inspection inspect(const inventory::Node& node, const inventory::Profile& profile,
                   const wire::Hardware& hardware, InspectionContext context = {});

/// The disks that the profile's rule can mean: one when the rule decides, else all of them.
std::vector<const wire::Disk*> systemDisks(const inventory::Profile& profile,
                                           const wire::Hardware& hardware);
/// "none", or what those disks hold.
std::string diskContent(const inventory::Profile& profile, const wire::Hardware& hardware);

/// hw.serial, hw.mac, hw.gpu.N, hw.part.KIND: what a certificate is bound to.
std::map<std::string, std::string> hardwareFacts(const inventory::Node& node,
                                                 const inventory::Profile& profile,
                                                 const wire::Hardware& hardware);

/// Of the agent's task. It listens to LLDP only where a cable is declared: that takes as long as a
/// switch is silent.
std::string inspectParams(const inventory::Cluster& cluster, const NodeName& name);

}  // namespace muster::provision
