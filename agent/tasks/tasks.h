// SPDX-License-Identifier: Apache-2.0
// The fixed set of things that an agent can be told to do. Every handler takes its parameters
// strictly, is idempotent, and reaches the machine only below `root` and by the programs that it
// names.
#pragma once

#include "agent/core/agent.h"
#include "agent/core/disk_content.h"
#include "agent/core/task_context.h"
#include "base/clock.h"
#include "base/io/crypto.h"
#include "base/io/process.h"
#include "wire/task_params.h"

#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

namespace muster::agent {

/// What the handlers work with. Borrowed; outlives the agent.
struct TaskTools {
  std::filesystem::path root = "/";
  std::string provisioning_mac;  ///< chooses the NIC for soft-RoCE; may be empty
  io::ProcessRunner& processes;
  Workers& workers;
  Clock& clock;
  std::filesystem::path self =
      "/proc/self/exe";  ///< this program, run again for what may crash or hang (NVML, checks)
  /// What a block device holds. Blocking.
  std::function<Result<DiskContent>(const std::filesystem::path&)> disk_content;
  /// The node's key and certificate as they are now, for who fetches from the controller. Errors:
  /// Corrupt, NotFound
  std::function<Result<io::TlsIdentity>()> identity = {};
  /// One of the controllers answers, and proves itself by the root that the node was given.
  /// Errors: Unavailable, Timeout, Denied
  std::function<Async<void>()> reach_controller = {};
};

/// DMI, CPUs, memory, disks with what they hold, NICs, RDMA devices, GPUs.
Async<wire::Hardware> inspect(TaskTools tools);
/// The running values; a probe that finds nothing is left out. Names: nvml.driver, module.NAME,
/// package.NAME, rdma.devices, kernel.
Task<std::map<std::string, std::string>> readProbes(TaskTools tools, std::set<std::string> names);

Async<nlohmann::json> runInspect(TaskTools tools, nlohmann::json params);
Async<nlohmann::json> runProbe(TaskTools tools, nlohmann::json params);
Async<nlohmann::json> installDriver(TaskTools tools, nlohmann::json params, TaskContextPtr context);
Async<nlohmann::json> installDriver(TaskTools tools, wire::DriverParams params,
                                    TaskContextPtr context);
Async<nlohmann::json> setStorage(TaskTools tools, nlohmann::json params, TaskContextPtr context);
Async<nlohmann::json> joinPool(TaskTools tools, nlohmann::json params, TaskContextPtr context);
Async<nlohmann::json> leavePool(TaskTools tools, TaskContextPtr context);
/// RunChecks and RdmaPair: in a process of their own, so that a crash, a hang or a stale library is
/// the check's failure only.
Async<nlohmann::json> runChecksApart(TaskTools tools, nlohmann::json params,
                                     TaskContextPtr context);
Async<nlohmann::json> runRdmaPairApart(TaskTools tools, nlohmann::json params,
                                       TaskContextPtr context);

/// Nobody may use them; all of the node's where a Fabric Manager runs. Errors: NotFound (no such
/// GPU answers), Conflict (in use)
Async<nlohmann::json> resetGpus(TaskTools tools, nlohmann::json params, TaskContextPtr context);
/// The end of the kernel's log of this boot.
Async<nlohmann::json> readKernelLog(TaskTools tools);

/// All handlers that this mode allows; WriteImage is added by the caller. `was_reset` is told which
/// GPUs are as new.
TaskHandlers makeHandlers(wire::Mode mode, TaskTools tools,
                          std::function<void(const std::vector<std::string>&)> was_reset = {});

/// One program, to its end. Errors: its own, or a non-zero exit with the end of what it said
Async<std::string> runTool(TaskTools tools, std::string program, std::vector<std::string> args,
                           std::chrono::seconds timeout);

}  // namespace muster::agent
