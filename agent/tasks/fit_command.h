// SPDX-License-Identifier: Apache-2.0
// `muster-agent fit`: a hook of the scheduler asks whether this node may start a job. Slurm's
// HealthCheckProgram and Prolog call it as root. docs/pools.md
#pragma once

#include <filesystem>
#include <string>

namespace muster::agent {

struct FitCommand {
  bool drain = false;   ///< an unfit node is drained in Slurm, unless somebody has done that before
  bool prolog = false;  ///< 0 unless the node is unfit: a node whose agent is away starts jobs
  std::filesystem::path root = "/";
  std::string node;  ///< as Slurm calls it; empty: SLURMD_NODENAME, else the host's name
};

enum : int { kFit = 0, kUnfit = 1, kFitnessUnknown = 3 };

/// Prints one line, "fit", "unfit: REASON" or "unknown: REASON", and answers the exit status. Reads
/// one small file; only an unfit node that is to be drained waits for scontrol.
int runFit(const FitCommand& command);

}  // namespace muster::agent
