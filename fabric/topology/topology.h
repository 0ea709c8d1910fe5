// SPDX-License-Identifier: Apache-2.0
// What is wired to what: the declaration expanded, and the text of ibnetdiscover read and written.
// Pure.
#pragma once

#include "base/result.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fwd.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

/// One port of one device as declared or found.
struct Port {
  std::string node;  ///< node description without the HCA: "gpu001 mlx5_0", "leaf-su1-r0"
  int number = 0;
  friend auto operator<=>(const Port&, const Port&) = default;
};
/// What only a discovery knows of a port; a switch is addressed by its port 0.
struct PortAddress {
  std::string guid;  ///< "0x0000000000100001"
  int lid = 0;       ///< 0: no subnet manager has given one yet
  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};
struct Device {
  std::string name;  ///< node description
  bool is_switch = false;
  int ports = 0;
  std::string guid;  ///< 0x… when known
  std::map<int, PortAddress> addresses;
  inventory::AttachedRole role = inventory::AttachedRole::None;  ///< declared only
  /// A switch that a shape declares: leaf 1, spine 2, core 3. 0: its cables say (switchLevels).
  int level = 0;
  /// A declared HCA that is no node's: storage, UFM, a gateway, the controller. It may be cabled to
  /// a switch of any level, and says nothing about levels.
  bool is_attached = false;
};
struct Link {
  Port a, b;                ///< a < b
  std::string width_speed;  ///< "4xHDR"
  friend auto operator<=>(const Link&, const Link&) = default;
};
struct Topology {
  std::map<std::string, Device> devices;
  std::vector<Link> links;                ///< ordered
  std::vector<std::string> shared_guids;  ///< port GUIDs that several found devices claim; only one
                                          ///< of them is in `devices`
  /// Declared only: HCAs of the inventory's other fabrics → the fabric. One that is found here is
  /// in the wrong place, whatever else its cable says.
  std::map<std::string, std::string, std::less<>> elsewhere;
  /// Found only: GUIDs of parts of switches that answer as HCAs (switch_internal.h), and are not in
  /// `devices`.
  std::vector<std::string> switch_parts;
};

/// The controller's own HCA, where the fabric names no other: opensm and the tools sit there. Its
/// cable is part of the declaration (see declaredTopology).
inline constexpr std::string_view kControllerHca = "controller mlx5_0";
/// The one that this fabric names.
std::string controllerHca(const inventory::Fabric& fabric);
/// Node description of an HCA that nobody has named: "gpu001 mlx5_0".
std::string hcaName(std::string_view node, int rail);
/// "gpu001 mlx5_0" → "gpu001"; a switch is its own host.
std::string_view hostOf(std::string_view device_name);
/// The id that a device has in ibsim (SIM_HOST, console commands): node description with '-' for
/// the space.
std::string ibsimNodeId(std::string_view device_name);
/// "leaf-su1-r0 port 5"
std::string toString(const Port& port);

/// A node on a fabric, with its HCAs rail after rail.
struct Host {
  std::string name;
  std::vector<std::string> hcas;  ///< node descriptions
  int place = 0;  ///< on the fabric, counted from 0, SU by SU; -1: the declared places leave it out
};
/// In the order of the inventory.
std::vector<Host> hostsOn(const inventory::Cluster& cluster, const inventory::Fabric& fabric);

/// Expands the declaration. Pure.
/// Names: leaf "leaf-suS-rR" (rail-optimized) or "leaf-suS-LL" (fat tree), spine "spine-NNN" (two
/// levels) or "spine-suS-KK" (three), core "core-NNN", each behind the switch_prefix, HCA "NODE
/// HCA" with the profile's names, else mlx5_R. A rail-optimized leaf holds node i of its SU on port
/// i + 1; the HCAs of a fat tree fill leaf after leaf. Uplinks start above the down ports (half of
/// the switch, or nodes_per_su if more). The controller's HCA has the last down port of the last
/// SU's leaf of rail 0 (of a fat tree: of the last leaf), as UFM nodes have; so the last SU holds
/// one node less when nodes fill the leaf. A node's place is what `places` say, else its order
/// among the nodes whose profile names this fabric, SU by SU. With declared places, place i of a
/// fat tree is the i-th run of `rails` ports. With cores, spine k of every SU goes to all cores of
/// plane k: cores k × (cores ÷ spines_per_su) and following. `cables` add what a shape does not
/// know. Explicit shape: cables as listed, or the topology file; "NODE" port p is its HCA of rail p
/// - 1, "NODE mlx5_R" is that HCA, other names are switches unless the cable has a role. Errors:
/// InvalidInput (more nodes, leaves or spines than ports; a cable's end used twice)
Result<Topology> declaredTopology(const inventory::Cluster& cluster,
                                  const inventory::Fabric& fabric);

/// Leaves 1, spines 2, cores 3: as the shape declares, else by the cables (levels.cc). Only nodes'
/// HCAs make a switch a leaf; where there are none, all HCAs do.
std::map<std::string, int> switchLevels(const Topology& topology);
/// Switches of the highest level: the roots of the tree. Empty when there is one level only.
std::vector<std::string> rootSwitches(const Topology& declared);
/// The switch that each HCA's first cable leads to, by the HCA's name.
std::map<std::string, std::string> switchesOfHcas(const Topology& topology);

/// As a net file for ibsim in ibnetdiscover's syntax: a HCA first, both directions of each link.
std::string toIbsimNet(const Topology& topology);
/// ibnetdiscover's output → topology. Errors: Corrupt with line number
Result<Topology> parseIbnetdiscover(std::string_view text);
/// iblinkinfo's output, with or without -l → topology. It knows neither the node GUIDs of HCAs nor
/// devices without a cable. Errors: Corrupt with line number; Unavailable (ports without a LID: no
/// subnet manager was there yet)
Result<Topology> parseIblinkinfo(std::string_view text);
/// Output of ibnetdiscover -p → topology. It knows no node GUIDs of HCAs. Errors: Corrupt with line
/// number
Result<Topology> parsePortReport(std::string_view text);
/// Any of them, by its own words, as people hand it over (found_text.h), without what is a part of
/// a switch. Errors: Corrupt, Unavailable (see above)
Result<Topology> parseFound(std::string_view text);

}  // namespace muster::fabric
