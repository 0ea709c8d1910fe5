// SPDX-License-Identifier: Apache-2.0
// A job of muster-collective as a step of Slurm: one task a node, each finds its place in Slurm's
// environment. For nodes that are in a pool: the scheduler keeps other work away meanwhile.
#pragma once

#include "validate/collective/collective.h"

#include <map>

namespace muster::collective {

/// What Slurm tells a task about its step.
struct SlurmStep {
  std::string id;           ///< "slurm-17.0"
  int nodes = 0, node = 0;  ///< how many, and which of them this is
  std::string first;        ///< name of node 0
};
/// Errors: InvalidInput (not in a step, or not one task a node), each with the srun that is meant
Result<SlurmStep> slurmStepOf(const std::map<std::string, std::string>& environment);

/// The first name of Slurm's list: "gpu001" of "gpu[001-004,9],x7". Errors: InvalidInput
Result<std::string> firstHost(std::string_view list);
/// Where slurmctld reaches the node, of `scontrol show node -o NAME`; a name that is no IPv4
/// address is looked up. Errors: NotFound, InvalidInput (it resolves to loopback: every host would
/// meet itself)
Result<std::string> addressOf(std::string_view scontrol_output, const std::string& node);

/// This node's part of the job that is wanted of all nodes.
Job partOf(const SlurmStep& step, const std::string& first_address, int port, Job wanted);

}  // namespace muster::collective
