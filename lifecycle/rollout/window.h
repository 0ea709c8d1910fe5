// SPDX-License-Identifier: Apache-2.0
// Window: which nodes may be taken out of work now without more than the ceilings allow being out,
// in any pool or failure domain.
#pragma once

#include "inventory/parse/change.h"
#include "lifecycle/model/facet.h"

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace muster::lifecycle {

enum class DomainKind { Pool, Rack, Su, Leaf };
std::string_view toString(DomainKind kind);

struct Domain {
  DomainKind kind = DomainKind::Rack;
  std::string name;
  std::string str() const;  ///< "rack r12"
  friend auto operator<=>(const Domain&, const Domain&) = default;
};

/// Node → the leaf switches that it is cabled to. lifecycle does not know fabrics; cli wires it to
/// fabric's topology.
using LeafSwitchesOf =
    std::function<std::map<std::string, std::set<std::string>>(const inventory::Cluster&)>;

/// Every group that a node belongs to: its pool, its rack, its scalable unit (rail-optimized
/// fabrics), its leaf switches.
std::map<NodeName, std::vector<Domain>> domainsOf(const inventory::Cluster& cluster,
                                                  const LeafSwitchesOf& leaves);

/// How many of a group of `size` nodes may be out at once; `size` where no ceiling is set.
std::size_t limitOf(const inventory::Unavailability& ceilings, DomainKind kind, std::size_t size);

class Window {
 public:
  Window(std::map<NodeName, std::vector<Domain>> domains,
         const inventory::Unavailability& ceilings);

  /// Why it must not be taken out now; empty: it may. A node that is out already makes nothing
  /// worse.
  std::string whyNot(const NodeName& node) const;
  void out(const NodeName& node);
  void in(const NodeName& node);
  bool isOut(const NodeName& node) const { return out_.contains(node); }
  /// Nodes of a group that has a ceiling, all over the cluster: whose state matters.
  std::vector<NodeName> watched() const;

 private:
  struct Group {
    std::size_t size = 0, limit = 0;
    std::set<NodeName> out;
  };

  std::map<NodeName, std::vector<Domain>> domains_;  ///< those with a ceiling only
  std::map<Domain, Group> groups_;
  std::set<NodeName> out_;
};

}  // namespace muster::lifecycle
