// SPDX-License-Identifier: Apache-2.0
// Collectives over groups of nodes: who is which rank of what, what the data must be, what the
// numbers mean. No MPI and no ssh: the controller names a meeting place for each group, agents
// start the ranks. Ranks talk by NCCL, or by TCP where there is no GPU.
#pragma once

#include "base/result.h"
#include "validate/collective/element_values.h"

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace muster::collective {

std::string_view toString(Operation operation);  ///< "all-reduce"
Result<Operation> parseOperation(std::string_view name);

/// Bus bandwidth over algorithm bandwidth. Source: nccl-tests' PERFORMANCE.md
double busFactor(Operation operation, int ranks);

/// Elements of input and output of one rank for a message of `bytes`, the size that nccl-tests
/// prints.
struct Shape {
  std::uint64_t count = 0;  ///< what the library is told
  std::uint64_t input = 0, output = 0;
};
Shape shapeOf(Operation operation, std::uint64_t bytes, int ranks);

/// Whom `rank` meets in each step of a tournament; -1: it sits the step out. Every other node's
/// rank of the same place once, so that rails stay among themselves; in a group of one node every
/// other rank once. In each step nobody is met by two.
std::vector<int> meetings(int ranks, int ranks_per_node, int rank);

enum class Transport { Nccl, Tcp };
std::string_view toString(Transport transport);  ///< "nccl"
Result<Transport> parseTransport(std::string_view name);

/// One node's part of one group.
struct Job {
  std::string group;
  std::string meeting;  ///< "10.0.0.1:41001": where rank 0 listens; the same for all of the group
  int ranks = 0, first_rank = 0, local_ranks = 0;
  std::vector<Operation> operations;
  Transport transport = Transport::Nccl;
  std::uint64_t min_bytes = 1u << 20, max_bytes = 1u << 30;
  int iterations = 20;
  std::uint64_t seed = 1;
  std::string hcas;                   ///< NCCL_IB_HCA: "=mlx5_0" for one rail; empty: NCCL's choice
  double min_busbw_gbytes_per_s = 0;  ///< of the largest message of every collective operation;
                                      ///< each node's report is evaluated by its own job's
  std::chrono::seconds limit{300};
};
nlohmann::json toJson(const Job& job);
/// Errors: InvalidInput with what is wrong
Result<Job> parseJob(std::string_view json);

/// A group as the controller knows it: addresses of its nodes in rank order.
struct Group {
  std::string name;
  std::vector<std::string> nodes;  ///< names
  std::string first_address;
  int gpus_per_node = 8;
};
struct NodeJob {
  std::string node;
  Job job;
};
/// Jobs of all nodes of all groups, which run at once. Pure.
/// Errors: InvalidInput when a node is in two groups, a group has less than two ranks, or ports run
/// out
Result<std::vector<NodeJob>> placeGroups(const std::vector<Group>& groups, const Job& common,
                                         int first_port);

/// One row of a result: a rank, an operation, a size; of a Pair also the other rank, and the
/// largest size only.
struct Row {
  int rank = 0, peer = -1;
  std::string device;  ///< PCI address of its GPU
  Operation operation = Operation::AllReduce;
  std::uint64_t bytes = 0, wrong = 0;
  double microseconds = 0, algbw_gbytes_per_s = 0, busbw_gbytes_per_s = 0;
};
struct JobReport {
  std::string group;
  std::vector<Row> rows;
  std::vector<std::string> findings;  ///< empty, and all rows there: passed
  bool passed = false;
};
nlohmann::json toJson(const JobReport& report);
/// Errors: Corrupt. A report that claims to have passed without a row for each rank, operation,
/// size and meeting of the job has not.
Result<JobReport> parseReport(std::string_view json, const Job& job);

/// One thing that all ranks of a group, or two of them, do together.
struct Step {
  Operation operation = Operation::AllReduce;
  Shape shape;
  int peer = -1;  ///< of a Pair
};

/// One rank of a group, joined. Used by one thread.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual std::string device() const = 0;
  /// Fills the input, makes the output hold nothing, runs once, answers how many output values are
  /// wrong.
  virtual Result<std::uint64_t> check(const Step& step, std::uint64_t seed) = 0;
  /// Seconds of one, from so many: their mean where the device counts them (as nccl-tests), their
  /// median over TCP.
  virtual Result<double> time(const Step& step, int iterations) = 0;
};
/// Makes rank `rank` join: called on the thread that will use it, for all local ranks at once.
using Join =
    std::function<Result<std::unique_ptr<Communicator>>(const Job& job, int rank, int local)>;

/// What is known of a job while it runs: all that is left of one that must be ended from outside.
class Progress {
 public:
  void add(Row row);
  void fails(std::string why);
  JobReport soFar(const std::string& group) const;

 private:
  mutable std::mutex mutex_;
  JobReport report_;
};

/// Runs all local ranks of the job, each on its own thread. What goes wrong is in the report.
JobReport runJob(const Job& job, const Join& join, Progress& progress);
JobReport runJob(const Job& job, const Join& join);
/// The same for all processes of the job, and for hardly any other.
std::uint64_t jobNumber(const Job& job);
/// Joins by TCP: rank 0 listens at the meeting place and tells everybody where the others listen.
/// Its rates are those of the host's stack. Errors: Timeout (somebody did not come), Conflict
/// (somebody means another job), Unavailable (address, broken stream)
Result<std::unique_ptr<Communicator>> joinTcp(const Job& job, int rank, int local);

}  // namespace muster::collective
