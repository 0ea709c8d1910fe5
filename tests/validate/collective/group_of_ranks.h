// SPDX-License-Identifier: Apache-2.0
// A job in which one process has every rank and does every operation, by whatever library.
#pragma once

#include "validate/collective/transports.h"

namespace muster::collective {

/// Ranks that join by `found`; its error is the report's finding.
inline JobReport runEveryOperation(const Result<NcclFound>& found, int ranks,
                                   std::chrono::seconds limit) {
  Job job;
  job.limit = limit;
  job.group = "g", job.meeting = "127.0.0.1:1", job.ranks = job.local_ranks = ranks;
  job.operations = {Operation::AllReduce, Operation::AllGather, Operation::ReduceScatter,
                    Operation::AllToAll,  Operation::SendRecv,  Operation::Pair};
  job.min_bytes = 1024, job.max_bytes = 4096, job.iterations = 3;
  if (!found) return {job.group, {}, {found.error().str()}, false};
  const auto id = found->make_id();
  if (!id) return {job.group, {}, {id.error().str()}, false};
  return runJob(job, found->join_by(*id));
}

}  // namespace muster::collective
