// Facade of fabric/: declared topology, subnet manager, partitions, declared-versus-found.
#pragma once

#include "base/io/process.h"
#include "inventory/cluster.h"
#include "lifecycle/phase.h"

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
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
};
struct Link {
  Port a, b;                ///< a < b
  std::string width_speed;  ///< "4xHDR"
  friend auto operator<=>(const Link&, const Link&) = default;
};
struct Topology {
  std::map<std::string, Device> devices;
  std::vector<Link> links;  ///< ordered
};

/// The controller's own HCA: opensm and the tools sit there. Its cable is part of the declaration (see declaredTopology).
inline constexpr std::string_view kControllerHca = "controller mlx5_0";
/// Node description of a node's HCA on a rail: "gpu001 mlx5_0".
std::string hcaName(std::string_view node, int rail);
/// The id that a device has in ibsim (SIM_HOST, console commands): node description with '-' for the space.
std::string ibsimNodeId(std::string_view device_name);

/// Expands the declaration. Pure.
/// Names: leaf "leaf-suS-rR", spine "spine-NNN", HCA "NODE mlx5_R". A leaf holds node i of its SU on port i + 1; its uplinks
/// start above the down ports (half of the switch, or nodes_per_su if more). The controller's HCA has the last down port of
/// the last SU's leaf of rail 0, as UFM nodes have; so the last SU holds one node less when nodes_per_su fills the leaf.
/// A node's place is its order among the nodes whose profile names this fabric, SU by SU.
/// Explicit shape: cables as listed; "NODE" port p is HCA p - 1, "NODE mlx5_R" is that HCA, other names are switches.
/// Errors: InvalidInput (more nodes, leaves or spines than ports; a cable's end used twice)
Result<Topology> declaredTopology(const inventory::Cluster& cluster, const inventory::Fabric& fabric);
/// As a net file for ibsim in ibnetdiscover's syntax: a HCA first, both directions of each link.
std::string toIbsimNet(const Topology& topology);
/// ibnetdiscover's output → topology. Errors: Corrupt with line number
Result<Topology> parseIbnetdiscover(std::string_view text);

enum class DeviationKind { MissingNode, ExtraNode, MissingLink, ExtraLink, Miswired, WrongWidthSpeed };
std::string_view toString(DeviationKind kind);
struct Deviation {
  DeviationKind kind;
  Port at;
  std::string declared, found;
  std::string repair;  ///< "move the cable of gpu005 mlx5_0 port 1 from leaf-su1-r1 port 5 to leaf-su1-r0 port 5"
};
/// Pure. Empty: the fabric is as declared.
std::vector<Deviation> compare(const Topology& declared, const Topology& found);

/// Tools and opensm attach to the controller's HCA: SIM_HOST = ibsimNodeId(kControllerHca) in the twin.
struct FabricOptions {
  std::filesystem::path run_folder;             ///< opensm.conf, root GUIDs, partitions.conf, logs, pid file
  std::vector<std::string> tool_prefix;         ///< put before each IB tool: {"ibsim-run"} in the twin
  std::map<std::string, std::string> tool_env;  ///< IBSIM_SOCKNAME, SIM_HOST in the twin
  std::chrono::seconds discovery_limit{60};     ///< for one ibnetdiscover: 16,384 HCAs take 10.5 s when nothing is lost
};
std::unique_ptr<lifecycle::Phase> makeFabricPhase(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
                                                  FabricOptions options);

/// One discovery of the whole fabric, compared with what the subnet manager sees when muster's own is up.
/// Errors: Unavailable (a MAD timed out, or the subnet manager sees other devices: an incomplete discovery is no discovery)
Async<Topology> discover(io::ProcessRunner& processes, FabricOptions options);

/// What `muster fabric diff` shows.
struct DiffReport {
  std::string fabric;
  std::size_t devices = 0, links = 0;  ///< found
  std::vector<Deviation> deviations;
  std::string error;  ///< why there is no answer; empty: there is one

  static constexpr int kEqual = 0, kDeviates = 1, kNoAnswer = 2;
  int exitCode() const { return !error.empty() ? kNoAnswer : deviations.empty() ? kEqual : kDeviates; }
};
Async<DiffReport> diff(const inventory::Cluster& cluster, io::ProcessRunner& processes, FabricOptions options);
std::string toText(const DiffReport& report);
std::string toJson(const DiffReport& report);

}  // namespace muster::fabric
