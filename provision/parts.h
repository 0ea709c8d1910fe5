// SPDX-License-Identifier: Apache-2.0
// Is what can be pulled out of a machine what its profile expects, and is the machine where the
// inventory says? Pure.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"
#include "inventory/model/hardware.h"
#include "inventory/model/node.h"
#include "wire/messages.h"

#include <map>
#include <string>
#include <vector>

namespace muster::provision {

struct Mismatch {
  std::string text;      ///< "7 GPUs seen, 8 expected"
  std::string evidence;  ///< JSON: expected, seen, at
  std::string what_to_do;
};

/// Every rule of the profile's `expect.parts` against what was seen.
std::vector<Mismatch> evaluateParts(const std::vector<inventory::PartRule>& rules,
                                    const wire::Hardware& hardware);

/// hw.part.dimm, .hca, .nvme, .nvswitch, .bmc: which parts of a kind there are, as a sorted list of
/// serials ("slot=serial" for memory), separated by ", ". Nothing of a kind of which no part says
/// its serial: without a driver some cannot be seen, and what is not seen is not gone.
std::map<std::string, std::string> partFacts(const wire::Hardware& hardware);

/// Whether the NIC that boots is cabled to the declared switch and port. Nothing declared: nothing
/// to evaluate. `listened`: the agent has waited for a neighbour, so that silence is a mismatch
/// too. `others`: all nodes, to name whose cable it is.
std::vector<Mismatch> evaluateCabling(const inventory::Node& node, const wire::Hardware& hardware,
                                      bool listened, const std::vector<inventory::Node>& others);
/// The same of its further Ethernets whose switch ports the node says (`ports`), found by name, by
/// MAC or by place.
std::vector<Mismatch> evaluateFurtherCabling(const inventory::Node& node,
                                             const inventory::Profile& profile,
                                             const wire::Hardware& hardware, bool listened);
/// A NIC has declared cabling and no neighbour in this report: the agent must listen.
bool needsNeighbour(const inventory::Node& node, const inventory::Profile& profile,
                    const wire::Hardware& hardware);
/// Whether any cabling is declared.
bool declaresCabling(const inventory::Node& node);

/// Which nodes are declared with a serial, or with a MAC. The list of nodes must outlive it as it
/// is.
class IdentityIndex {
 public:
  explicit IdentityIndex(const std::vector<inventory::Node>& nodes);
  bool isOf(const std::vector<inventory::Node>& nodes) const {
    return nodes.data() == first_ && nodes.size() == count_;
  }
  std::vector<const inventory::Node*> ofSerial(const std::string& serial) const;
  std::vector<const inventory::Node*> ofMac(const Mac& mac) const;

 private:
  const inventory::Node* first_;
  std::size_t count_;
  std::multimap<std::string, const inventory::Node*> by_serial_;
  std::multimap<Mac, const inventory::Node*> by_mac_;
};

/// This machine, or one of its NICs, is declared as another node.
std::vector<Mismatch> evaluateMixUp(const inventory::Node& node, const wire::Hardware& hardware,
                                    const IdentityIndex& identity_index);

}  // namespace muster::provision
