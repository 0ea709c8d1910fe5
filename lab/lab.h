// SPDX-License-Identifier: Apache-2.0
// The twin: the inventory's rack as virtual machines in a network namespace of its own. Facade of
// lab/.
#pragma once

#include "base/log.h"
#include "base/result.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::lab {

/// Where a running lab keeps things; written to FOLDER/lab.json by up, read by whoever wires muster
/// to it.
struct LabHandle {
  std::string name;  ///< from the cluster's name; names the namespace "muster-NAME"
  std::string id;  ///< of this very rack, drawn when it was made: a later one of the same name has
                   ///< other BMCs, disks and keys
  std::filesystem::path folder;  ///< run folder: libvirt, disks, logs, pid files
  std::string netns;
  std::string libvirt_uri;
  std::filesystem::path slurm_conf;       ///< for slurmctld and the tools beside it
  std::filesystem::path slurm_node_conf;  ///< the same without the lines that only the controller
                                          ///< needs: for slurmd on the nodes
  std::filesystem::path munge_key, munge_socket;
  std::map<std::string, std::string> fabric_env;  ///< IBSIM_SOCKNAME, SIM_HOST, of the main fabric
  std::map<std::string, std::map<std::string, std::string>> fabrics;  ///< the same of each, by name
};

struct NodeStatus {
  std::string name, power, bmc_url, console;
};

using Say = std::function<void(std::string_view)>;

/// Brings everything up, or nothing: a failure undoes what was made. Up again on a running lab
/// repairs what is missing. What an up or a down that was cut short has left, and a rack whose
/// folder or namespace's name is lost, is ended first; a new rack has empty disks.
Result<LabHandle> up(const inventory::Cluster& cluster, const std::filesystem::path& folder,
                     Say say);
/// Leaves nothing behind, also after a crash of up. Down on nothing succeeds.
Result<void> down(const std::filesystem::path& folder, Say say);
Result<std::optional<LabHandle>> find(const std::filesystem::path& folder);
Result<std::vector<NodeStatus>> status(const LabHandle& lab);
/// Types one line on a simulated fabric's console: `Unlink "leaf-su1-r0"[1]`, `ReLink …`, see
/// ibsim's help. `fabric`: its name; empty: the main one. Errors: NotFound (no such fabric in this
/// lab)
Result<void> fault(const LabHandle& lab, std::string_view console_line,
                   const std::string& fabric = {});
/// What a virtual BMC does wrong (lab/vbmc/faults.h), as JSON. `add`: rules and update_faults that
/// come to those that are set; null: nothing is changed. Answers what is set then. Errors:
/// NotFound, InvalidInput (the BMC's own words), Unavailable
struct BmcLogin {
  std::string url, username;
  Secret password;
};
Result<std::string> bmcFaults(const LabHandle& lab, const BmcLogin& bmc, const std::string& add,
                              bool clear);
/// A node's serial line: a Unix socket that takes one connection, there while the node is on.
std::filesystem::path consoleSocket(const LabHandle& lab, const std::string& node);
/// Moves this process into the lab's network namespace. Before any thread is started.
Result<void> enter(const LabHandle& lab);

/// How virtual machines run here: KVM only when a tiny guest proved it (answer cached), else TCG.
enum class Accel { Kvm, Tcg };
Accel provenAccel(const std::filesystem::path& cache, Say say);

/// A flat apt repository in `folder`: the simulated NVML in two versions, and the RDMA user space
/// with all that a minimal Debian 12 lacks for it. Downloads are kept in the cache.
Result<void> buildDriverRepo(const std::filesystem::path& folder, Say say);

/// `MUSTER_CACHE`, default ~/.cache/muster.
std::filesystem::path cacheFolder();

}  // namespace muster::lab
