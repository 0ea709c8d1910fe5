// SPDX-License-Identifier: Apache-2.0
// Pools: where certified nodes work, and how they are drained.
#pragma once

#include "inventory/model/approvals.h"
#include "inventory/model/credentials.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::inventory {

/// Checks on nodes on which nothing runs, ended as soon as a job wants them.
struct ActiveChecks {
  std::string gate;        ///< of level quick
  int every_hours = 24;    ///< from one check of a node to its next
  int nodes = 1;           ///< at most so many at the same time …
  int idle_percent = 100;  ///< … and at most this share of the idle ones, but one
};

struct SlurmPool {
  std::string partition;
  std::filesystem::path config;  ///< slurm.conf that the controller side uses; empty: the lab's, or
                                 ///< /etc/slurm/slurm.conf
  std::optional<int> reserve_hours;  ///< so long before a maintenance window opens, nodes are
                                     ///< reserved for runs that wait for it; absent: never
  std::optional<ActiveChecks> active_checks;  ///< absent: none
};

/// What a drain does with pods that end by themselves: those with restartPolicy Never or OnFailure.
enum class JobPods { Wait, Evict };
/// What a drain does with pods that lose something when they are evicted.
enum class FragilePods { Hold, Evict };
struct EvictionRules {
  JobPods jobs = JobPods::Wait;
  FragilePods empty_dir =
      FragilePods::Hold;  ///< pods with an emptyDir volume, whose content would be gone
  FragilePods unmanaged = FragilePods::Hold;  ///< pods that no controller would start again
};
struct KubernetesPool {
  std::string server;  ///< "https://10.20.0.2:6443", perhaps with a path
  std::filesystem::path
      ca;  ///< who signed the server's certificate, PEM; empty: pin says which certificate it is
  std::string pin;  ///< SHA-256 of the server's certificate, hex
  SecretRef token;
  std::filesystem::path client_certificate, client_key;  ///< instead of a token
  std::string domain;  ///< nodes are called NAME.domain there; empty: NAME
  std::string taint =
      "muster/out:NoSchedule";  ///< KEY[=VALUE]:NoSchedule, on nodes that muster keeps out
  std::map<std::string, std::string> labels;  ///< put on nodes when they join
  EvictionRules evict;
};

/// What happens when a drain is not finished by its deadline: the node stays drained, it takes work
/// again, or the pods that are left are deleted.
enum class OnTimeout { Wait, Undrain, DeletePods };
struct DrainPolicy {
  std::optional<int>
      deadline_minutes;  ///< from the order to drain; absent: only the action's own deadline counts
  OnTimeout on_timeout = OnTimeout::Wait;
};

/// Exactly one of the schedulers is there.
struct Pool {
  std::string name;
  std::optional<SlurmPool> slurm;
  std::optional<KubernetesPool> kubernetes;
  DrainPolicy drain;
  std::vector<MaintenanceWindow> maintenance;  ///< empty: always
};

}  // namespace muster::inventory
