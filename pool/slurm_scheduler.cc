// SPDX-License-Identifier: Apache-2.0
#include "pool/slurm_scheduler.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_output.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "wire/task_params.h"

#include <nlohmann/json.hpp>

namespace muster::pool {

namespace {

using lifecycle::ActContext;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Outcome;

constexpr std::chrono::seconds kJoinTask{300};
constexpr std::chrono::milliseconds kRegisterPoll{500};
constexpr std::chrono::milliseconds kDrainPoll{2000};
constexpr std::size_t kMaxConfBytes = 1u << 20;
constexpr std::size_t kMaxMungeKeyBytes = 1024;

std::map<std::string, std::string> toolEnv(const PoolOptions& options,
                                           const std::filesystem::path& conf) {
  auto env = options.tool_env;
  env["SLURM_CONF"] = conf.string();
  env["TZ"] = "UTC";  // so that the time of a drain's reason can be read
  return env;
}

}  // namespace

SlurmScheduler::SlurmScheduler(const inventory::Cluster& cluster, const inventory::Pool& pool,
                               gateway::AgentGateway& agents, io::ProcessRunner& processes,
                               Clock& clock, const PoolOptions& options)
    : partition_(pool.slurm->partition),
      conf_(pool.slurm->config.empty() ? options.slurm_conf : cluster.folder / pool.slurm->config),
      node_conf_(options.slurm_node_conf.empty() ? conf_ : options.slurm_node_conf),
      munge_key_(options.munge_key),
      agents_(agents),
      slurm_(processes, toolEnv(options, conf_), clock) {}

std::string SlurmScheduler::describe() const { return "Slurm partition " + partition_; }

std::string SlurmScheduler::unknownNode(const NodeName& node) const {
  return fmt::format("{} does not name node {}; add it there and run `scontrol reconfigure`",
                     conf_.string(), node.str());
}

Async<std::optional<Member>> SlurmScheduler::look(NodeName name) {
  CO_TRY(node, co_await slurm_.node(name.str()));
  if (!node) co_return std::optional<Member>();
  Member member;
  member.takes_work = node->takesJobs();
  member.has_work = node->hasJobs();
  member.silent = node->wouldTakeJobs() && !member.takes_work;
  member.by_person = node->takenOutByPerson();
  member.draining = member.ordered = node->draining() || member.by_person;
  member.state = node->state();
  member.reason = node->reason;
  member.ordered_by = node->reason_by;
  member.draining_since = node->reason_since;
  co_return std::optional<Member>(std::move(member));
}

/// The key travels in the task only: it is in no log, plan or event.
Result<wire::AgentTask> SlurmScheduler::joinTask(const std::string& id) const {
  auto conf = io::readFile(node_conf_, kMaxConfBytes);
  if (!conf) return fail(std::move(conf).error().within("slurm.conf for the nodes"));
  auto key = io::readFile(munge_key_, kMaxMungeKeyBytes);
  if (!key) return fail(std::move(key).error().within("munge key"));
  const wire::JoinPoolParams params{"slurm", *conf, *key};
  return wire::AgentTask{id, wire::TaskKind::JoinPool, toJson(params), kJoinTask};
}

/// Called again until slurmd has registered; the agent's task runs once for an intent. A node that
/// is down or drained must be resumed; one that is silent comes back by itself.
Async<Outcome> SlurmScheduler::admit(NodeName node, ActContext& context) {
  context.progress(0.2, "starting munge and slurmd");
  CO_TRY(task, joinTask(context.intentId()));
  CO_TRY_OK(co_await agents_.runTask(node, std::move(task)));
  CO_TRY(known, co_await slurm_.node(node.str()));
  if (!known)
    co_return fail(ErrorCode::Unavailable, fmt::format("slurmctld no longer knows {}", node.str()));
  if (known->takesJobs()) co_return Done{};
  context.progress(0.7, known->state());
  if (!known->slurmd_was_seen)
    co_return Again{kRegisterPoll, fmt::format("slurmd of {} to register", node.str())};
  if ((known->down() || known->draining()) && !known->takenOutByPerson()) {
    CO_TRY_OK(co_await slurm_.resume(node.str()));
  }
  co_return Again{kRegisterPoll, fmt::format("{} to be idle (now {})", node.str(), known->state())};
}

Async<void> SlurmScheduler::close(NodeName node, std::string reason) {
  CO_TRY_OK(co_await slurm_.drain(node.str(), std::move(reason)));
  co_return Result<void>();
}

/// Jobs end by themselves.
Async<Remains> SlurmScheduler::release(NodeName node) {
  CO_TRY(known, co_await slurm_.node(node.str()));
  Remains remains;
  remains.look_again = kDrainPoll;
  if (known && known->hasJobs()) {
    auto jobs = slurm_.jobs(node.str());
    auto named = co_await std::move(jobs);
    remains.work.push_back(fmt::format("running jobs to end ({} CPUs busy{})",
                                       known->allocated_cpus,
                                       named && !named->empty() ? "; " + *named : std::string()));
  }
  co_return remains;
}

Async<void> SlurmScheduler::reopen(NodeName node) {
  CO_TRY_OK(co_await slurm_.resume(node.str()));
  co_return Result<void>();
}

Async<std::vector<std::string>> SlurmScheduler::endWork(NodeName) {
  co_return fail(ErrorCode::Denied,
                 "muster never ends a Slurm job; cancel it with scancel, or wait");
}

}  // namespace muster::pool
