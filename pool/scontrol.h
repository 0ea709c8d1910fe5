// SPDX-License-Identifier: Apache-2.0
// Slurm through scontrol: the one place that knows its words. (scontrol of Slurm 22.05 has no JSON;
// -o is one record a line.)
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/process.h"
#include "pool/shared_list.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace muster::pool {

/// The word behind "KEY=", which begins the record or follows a blank. A value with blanks (Reason,
/// OS) ends the line or is not asked for.
std::optional<std::string_view> fieldOf(std::string_view record, std::string_view key);

/// One node as slurmctld sees it.
struct SlurmNode {
  std::string base;             ///< IDLE, MIXED, ALLOCATED, DOWN, UNKNOWN, …
  std::set<std::string> flags;  ///< DRAIN, NOT_RESPONDING, COMPLETING, …
  int allocated_cpus = 0;
  bool has_listed_job =
      false;  ///< squeue names a job there: a node whose jobs are all suspended is IDLE to scontrol
  bool slurmd_was_seen = false;  ///< a slurmd registered since slurmctld knows the node
  std::string reason;
  std::string reason_by;  ///< who gave it; empty: it stands in slurm.conf
  std::optional<WallTime> reason_since;

  bool draining() const { return flags.count("DRAIN") > 0; }
  bool responding() const { return flags.count("NOT_RESPONDING") == 0; }
  bool down() const { return base == "DOWN"; }
  bool hasJobs() const;    ///< running, suspended or ending; those of a node that is down have been
                           ///< ended by Slurm
  bool takesJobs() const;  ///< can start a job now, or is full of them
  bool wouldTakeJobs() const;  ///< as takesJobs, once its slurmd answers
  /// In muster's words, and by a user who is muster's.
  bool reasonIsMusters() const;
  /// Drained, DOWN or FAIL by somebody's order: not by muster's, and not by slurmctld's own
  /// evaluation of a node that it found down or drained because of what it found.
  bool takenOutByPerson() const;
  std::string state() const;
};
/// `scontrol show node -o`, with its times in UTC. Errors: Corrupt
Result<SlurmNode> parseSlurmNode(std::string_view text);

class Scontrol {
 public:
  Scontrol(io::ProcessRunner& processes, std::map<std::string, std::string> env, Clock& clock)
      : processes_(processes),
        env_(std::move(env)),
        nodes_(clock, "the query to slurmctld was cancelled",
               [this](std::set<std::string> names) { return ask(std::move(names)); }) {}
  Scontrol(const Scontrol&) = delete;
  /// nullopt: slurm.conf does not name the node. Errors: Unavailable (slurmctld does not answer)
  Async<std::optional<SlurmNode>> node(std::string name);
  /// The jobs on a node, for people: "job 17 of alice, 1:00:00 left". Errors: Unavailable
  Async<std::string> jobs(std::string name);
  Async<std::string> drain(std::string name, std::string reason);
  Async<std::string> resume(std::string name);

 private:
  Async<io::ProcessExit> tool(std::string program, std::vector<std::string> args);
  Async<std::string> update(std::vector<std::string> args);

  using List = SharedList<Result<SlurmNode>>;
  Async<List::Answer> ask(std::set<std::string> names);
  Async<List::Answer> askOne(std::string name);
  Async<List::Answer> askAll();
  /// Nodes with a job that runs or is suspended. To be asked after scontrol: a job that changes
  /// over in between is seen by one of both.
  Async<std::set<std::string>> nodesWithJobs(std::vector<std::string> only);

  io::ProcessRunner& processes_;
  const std::map<std::string, std::string> env_;
  List nodes_;
};

}  // namespace muster::pool
