// SPDX-License-Identifier: Apache-2.0
// OpenSM on the controller: its files, its process, what it reports.
//
// It outlives one `muster apply`: the process is found again by its pid file, or by its command
// line when muster died between starting it and writing the pid. It is restarted when it is dead or
// runs with other files than the declaration gives now; partitions and new nodes need only a
// SIGHUP.
#pragma once

#include "base/io/daemon_unit.h"
#include "fabric/discovery/tools.h"
#include "fabric/opensm/opensm_log.h"
#include "fabric/opensm/partitions.h"

namespace muster::fabric {

/// GUIDs that discoveries have shown, kept so that a node that is switched off keeps its
/// partitions. A node description is only a claim of the host; a HCA's GUID is learned only when it
/// hangs at its declared switch port.
struct KnownGuids {
  PortGuids hcas;                               ///< device name → port GUID
  std::map<std::string, std::string> switches;  ///< device name → node GUID

  void learn(const Topology& declared, const Topology& found);
  std::string toJson() const;
  static KnownGuids fromJson(
      std::string_view text);  ///< empty when the text is not ours: everything is learned again
};

/// Errors: InvalidInput (routing engine that OpenSM does not have, subnet managers that are not
/// there yet)
Result<void> checkSubnetManagers(const inventory::Fabric& fabric);

/// The routing engines that OpenSM is started with: as the fabric declares; `ftree`, which is also
/// the default, is `minhop` for a fabric of one switch, of which OpenSM makes no tree.
std::string routingOf(const inventory::Fabric& fabric, const Topology& declared);

/// The HCA that each declared subnet manager sits on, in their order: a node's first one.
std::vector<std::string> managerHcas(const inventory::Cluster& cluster,
                                     const inventory::Fabric& fabric);

/// Where one OpenSM runs.
struct SmSeat {
  std::string guid;              ///< port GUID that it binds to
  std::filesystem::path folder;  ///< its files
  int rank = 0;                  ///< 0: meant to be the master, then the standbys in their order
};
struct SmFiles {
  std::string opensm_conf, root_guids, io_guids, cn_guids, partitions;
  std::string digest() const;  ///< of what needs a restart: not the partitions and cn_guids, which
                               ///< are read at each sweep
};
/// Devices whose GUID is not known yet are left out.
SmFiles renderSm(const inventory::Fabric& fabric, const Topology& declared,
                 const PartitionRules& rules, const KnownGuids& known, const SmSeat& seat);
/// Digest of the same files with names in place of GUIDs and paths: known before anything is
/// discovered.
std::string declaredSmDigest(const inventory::Fabric& fabric, const Topology& declared);

class SubnetManager {
 public:
  /// `unit`: who runs OpenSM, where this process does not. `others`: the folders of the
  /// controller's subnet managers of other fabrics.
  SubnetManager(io::ProcessRunner& processes, const Tools& tools, std::filesystem::path folder,
                std::optional<io::DaemonUnit> unit = std::nullopt,
                std::vector<std::filesystem::path> others = {});

  /// Where OpenSM's own files are.
  const std::filesystem::path& servedFolder() const { return unit_ ? unit_->folder : folder_; }
  std::optional<pid_t> pid() const;
  bool startedWith(const SmFiles& files) const;
  bool nodesAre(const SmFiles& files) const;
  bool partitionsAre(const SmFiles& files) const;
  SmLog log() const;
  /// Last lines of OpenSM's log, for people.
  std::string logTail() const;
  /// Node GUIDs that the subnet manager sees, by its own dump; nullopt when it is not up.
  std::optional<std::set<std::string>> nodeGuids() const;

  /// In words, an OpenSM on this machine that is not muster's, such as the distribution's own
  /// service; empty: none.
  std::string rival() const;
  /// Stops what runs and starts anew. Errors: Conflict (a rival)
  Result<void> start(const SmFiles& files);
  /// Replaces cn_guids and has it read.
  Result<void> applyNodes(const SmFiles& files);
  /// Replaces partitions.conf and has it read.
  Result<void> applyPartitions(const SmFiles& files);
  /// These are in force, every table was read: what a later change goes back to.
  Result<void> provePartitions(const SmFiles& files) const;
  bool provenPartitionsAre(const SmFiles& files) const;
  /// The proven file is read again; answers what it says. Errors: NotFound (there is none),
  /// InvalidInput (OpenSM would refuse it too)
  Result<PartitionRules> rollBackPartitions();
  Result<void> stop();
  /// Has it read the partitions and sweep now. Errors: Unavailable (it does not run)
  Result<void> hangUp();

  Result<KnownGuids> knownGuids() const;
  Result<void> remember(const KnownGuids& known);

 private:
  /// How far the log has been read; another file in its place begins anew. OpenSM empties its own
  /// when it is full: what it said stays true.
  struct LogSoFar {
    ino_t inode = 0;
    std::uintmax_t offset = 0;
    SmLogReader reader;
    std::string kept;  // what opensm.state holds
  };
  SmLog keptState() const;
  void keep(const SmLog& log) const;
  struct Processes {
    std::vector<pid_t> own, others;
  };
  Processes opensms() const;
  /// What muster knows of it.
  std::filesystem::path file(std::string_view name) const { return folder_ / name; }
  /// What it reads and writes.
  std::filesystem::path served(std::string_view name) const { return servedFolder() / name; }
  Result<void> put(std::string_view name, const std::string& text) const;
  Result<pid_t> launch(const SmFiles& files);

  io::ProcessRunner& processes_;
  const Tools& tools_;
  std::filesystem::path folder_;
  std::optional<io::DaemonUnit> unit_;
  std::vector<std::filesystem::path> others_;
  io::PidFile pid_file_;
  mutable LogSoFar log_so_far_;
};

}  // namespace muster::fabric
