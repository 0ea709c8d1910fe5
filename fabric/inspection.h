// SPDX-License-Identifier: Apache-2.0
// What a fabric is, against what is declared: one discovery for all who ask within a while, and in
// words what is wrong with the subnet manager, the partitions, and the ports of a node.
#pragma once

#include "fabric/discovery/discovery.h"
#include "fabric/facets.h"
#include "inventory/model/fabric.h"
#include "lifecycle/model/finding.h"

#include <memory>
#include <optional>

namespace muster::fabric {

inline constexpr std::chrono::milliseconds kFresh{
    5000};  ///< one observation of all nodes shares a discovery
inline constexpr std::chrono::seconds kSmSettle{60};  ///< 16,384 HCAs take 52 s to SUBNET UP

/// Everything that follows from the declaration alone.
struct Declared {
  const inventory::Fabric* fabric = nullptr;
  Topology topology;
  PartitionRules partitions;
};
struct PkeyMismatch {
  std::string hca;
  Port port;  // the HCA's own, or the switch port that it hangs at
  std::string declared, found;
  bool is_wider = false;  // it may talk to somebody that it should not

  std::string str() const {
    return fmt::format("{} port {} has PKeys {}, declared {}", port.node, port.number, found,
                       declared);
  }
};

/// The declaration with what a discovery adds.
struct Picture {
  Topology found;
  std::vector<Deviation> deviations;
  PartitionRules rules;  // members as GUIDs
  SmFiles files;
  std::string sm_guid;                                   // port GUID of the controller's HCA
  std::optional<std::vector<PkeyMismatch>> wrong_pkeys;  // read when first asked for
};
using SharedPicture = std::shared_ptr<Picture>;

/// The first few orders to the technician, on one line.
std::string repairs(const std::vector<Deviation>& deviations);

class FabricInspection {
 public:
  /// `fabric`: its name; empty: the only one.
  FabricInspection(const inventory::Cluster& cluster, io::ProcessRunner& processes, Clock& clock,
                   FabricOptions options, const std::string& fabric = {});
  FabricInspection(const FabricInspection&) = delete;

  /// Errors: InvalidInput (the declaration cannot be)
  const Result<Declared>& declared() const { return declared_; }
  /// The controller's HCA on this fabric.
  std::string seat() const {
    return declared_ ? controllerHca(*declared_->fabric) : std::string(kControllerHca);
  }
  /// Why muster can run no OpenSM here; empty: it can.
  const std::string& noOpensm() const { return options_.no_opensm; }
  SubnetManager& manager() { return manager_; }
  const SubnetManager& manager() const { return manager_; }

  /// UFM's or a managed switch's: muster runs none, and checks what that one does.
  static bool isExternal(const inventory::Fabric& fabric) { return fabric.subnet_managers.empty(); }
  bool managerIsExternal() const { return declared_ && isExternal(*declared_->fabric); }
  /// Who runs its own subnet manager always has the partition Default; of another's only what is
  /// declared is looked at.
  static bool looksAtPartitions(const inventory::Fabric& fabric) {
    return !isExternal(fabric) || !fabric.partitions.empty();
  }
  bool looksAtPartitions() const { return declared_ && looksAtPartitions(*declared_->fabric); }
  bool hasStandby() const { return declared_ && declared_->fabric->subnet_managers.size() > 1; }

  /// Not older than that. Errors: those of the discovery
  Async<SharedPicture> picture(std::chrono::milliseconds max_age);
  /// Deviations of the node's own HCAs and their cables; a HCA that no subnet manager has reached
  /// is one as well.
  std::vector<Deviation> deviationsOf(const NodeName& node, const Picture& picture) const;

  // Empty: as declared.
  /// Errors: never, a lost answer is a problem too.
  Async<std::string> smProblem(const Picture& picture);
  Async<std::string> standbyProblem(const Picture& picture);
  Async<std::string> partitionsProblem(Picture& picture);
  /// Cables and PKey tables of one node.
  Async<std::string> portsProblem(NodeName node, Picture& picture);
  /// Reads the table of every HCA port and of the switch port it hangs at (which enforces it
  /// against the host's own tampering). Of one node (its own name), or of all (empty).
  Async<std::vector<PkeyMismatch>> readPkeys(const Picture& picture, std::string node);

 private:
  /// opensm.conf names the folder, and opensm has a working folder of its own.
  static FabricOptions absolute(FabricOptions options) {
    options.run_folder = std::filesystem::absolute(options.run_folder);
    for (auto& folder : options.other_folders) folder = std::filesystem::absolute(folder);
    return options;
  }
  /// For who asks what was seen (kept_report.h); what cannot be kept is logged.
  void keepLook(const Topology& found, const Comparison& compared);
  void keepFailedLook(const Error& error);
  Async<std::string> externalSmProblem(const Picture& picture);
  /// Pairs of HCAs without a way through the tables that are in the switches, and why.
  Async<std::string> routesProblem(const Picture& picture);
  /// Whether a subnet manager on this device is one that was declared.
  bool mayManage(const std::string& device) const;
  /// Names a subnet manager that nobody declared.
  Async<std::string> strangeManager(const Picture& picture);
  Async<const std::vector<PkeyMismatch>*> wrongPkeys(Picture& picture);
  std::string ownPartitionsProblem(Picture& picture) const;

  const inventory::Cluster& cluster_;
  Clock& clock_;
  const FabricOptions options_;
  Tools tools_;
  SubnetManager manager_;
  Discovery discovery_;
  const Result<Declared> declared_;
  FirmwareMemory firmware_;
  /// Tables in which every pair had a way. They are not read again for the same devices, cables and
  /// LIDs before OpenSM sweeps again, and not before `until`: on 16,384 HCAs it takes a minute.
  struct GoodRoutes {
    std::size_t fabric = 0;  ///< hash
    std::size_t sweeps = 0;
    std::chrono::steady_clock::time_point until{};
  };
  std::optional<GoodRoutes> good_routes_;
  SharedPicture last_;
  std::optional<Error> last_error_;
  std::chrono::steady_clock::time_point last_at_{};
};

}  // namespace muster::fabric
