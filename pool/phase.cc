// PoolPhase: a node joins Slurm only with a valid certificate; drain is the inverse.
//
// The fact `pool` answers one question: may something that disturbs the node be done now?
//   in       a job runs there or can start there (also while it drains: its jobs are still running)
//   drained  it was taken out and nothing runs there
//   silent   Slurm does not hear it, but starts jobs there as soon as it does
//   out      Slurm starts nothing there for another reason (down, not named in slurm.conf)
#include "pool/pool.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "pool/slurm.h"

#include <nlohmann/json.hpp>

namespace muster::pool {

namespace {

using lifecycle::ActContext;
using lifecycle::Action;
using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::FacetRef;
using lifecycle::Fact;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Subject;

constexpr std::string_view kOut = "out";
constexpr std::chrono::seconds kJoinExpected{30}, kJoinDeadline{600}, kJoinTask{300};
constexpr std::chrono::milliseconds kRegisterPoll{500};
constexpr std::chrono::milliseconds kDrainPoll{2000};
constexpr std::size_t kMaxConfBytes = 1u << 20;
constexpr std::size_t kMaxMungeKeyBytes = 1024;

std::string_view poolValue(const std::optional<SlurmNode>& node) {
  if (!node) return kOut;
  if (node->hasJobs() || node->takesJobs()) return lifecycle::kPoolIn;
  if (node->wouldTakeJobs()) return lifecycle::kPoolSilent;
  return node->draining() ? lifecycle::kPoolDrained : kOut;
}

class PoolPhase final : public lifecycle::Phase {
 public:
  PoolPhase(const inventory::Cluster& cluster, agent::AgentGateway& agents, const lifecycle::CertificateGate& certificates,
            io::ProcessRunner& processes, Clock& clock, PoolOptions options)
      : cluster_(cluster),
        agents_(agents),
        certificates_(certificates),
        processes_(processes),
        clock_(clock),
        options_(std::move(options)) {}

  std::string_view name() const override { return "pool"; }
  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject, const lifecycle::FactSet& facts) const override;
  Async<std::vector<Fact>> observe(Subject subject) override;
  Async<Outcome> act(Action action, ActContext& context) override;
  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

 private:
  const inventory::Pool* poolOf(const Subject& subject) const;
  std::filesystem::path confOf(const inventory::Pool& pool) const;
  Slurm slurmOf(const inventory::Pool& pool) const;
  Result<agent::AgentTask> joinTask(const inventory::Pool& pool, const std::string& id) const;
  Async<Outcome> join(NodeName node, const inventory::Pool& pool, ActContext& context);
  Async<Outcome> admit(NodeName node, Slurm slurm, ActContext& context);
  Async<Outcome> drain(NodeName node, Slurm slurm, std::string reason, ActContext& context);

  const inventory::Cluster& cluster_;
  agent::AgentGateway& agents_;
  const lifecycle::CertificateGate& certificates_;
  io::ProcessRunner& processes_;
  Clock& clock_;
  const PoolOptions options_;
};

const inventory::Pool* PoolPhase::poolOf(const Subject& subject) const {
  if (subject.isCluster()) return nullptr;
  const auto* node = cluster_.findNode(subject.node());
  if (!node) return nullptr;
  auto pool = cluster_.pools.find(cluster_.profileOf(*node).pool);
  return pool == cluster_.pools.end() ? nullptr : &pool->second;
}

std::filesystem::path PoolPhase::confOf(const inventory::Pool& pool) const {
  return pool.slurm.config.empty() ? options_.slurm_conf : cluster_.folder / pool.slurm.config;
}

Slurm PoolPhase::slurmOf(const inventory::Pool& pool) const {
  auto env = options_.tool_env;
  env["SLURM_CONF"] = confOf(pool).string();
  return Slurm(processes_, std::move(env));
}

std::vector<Goal> PoolPhase::goals(const inventory::Cluster& cluster, const Subject& subject, const lifecycle::FactSet&) const {
  const auto* pool = poolOf(subject);
  if (!pool) return {};
  FacetRef facet{subject, FacetName(std::string(lifecycle::kPoolFacet))};
  FacetRef certificate{subject, FacetName("certificate")};
  const auto& profile = cluster.profileOf(*cluster.findNode(subject.node()));
  return {{facet,
           std::string(lifecycle::kPoolIn),
           lifecycle::Disruption::None,
           kJoinExpected,
           kJoinDeadline,
           {certificate},
           fmt::format("profile {} belongs to pool {} (Slurm partition {})", profile.name, pool->name, pool->slurm.partition)}};
}

Async<std::vector<Fact>> PoolPhase::observe(Subject subject) {
  std::vector<Fact> facts;
  const auto* pool = poolOf(subject);
  if (!pool) co_return facts;
  auto slurm = slurmOf(*pool);
  auto ask = slurm.node(subject.str());
  CO_TRY(node, co_await std::move(ask));
  nlohmann::json evidence = {{"state", node ? node->state() : "not named in slurm.conf"}};
  if (node && !node->reason.empty()) evidence["reason"] = node->reason;
  facts.push_back({subject, FacetName(std::string(lifecycle::kPoolFacet)), std::string(poolValue(node)), clock_.now(), "scontrol show node",
                   evidence.dump()});
  co_return facts;
}

Async<Outcome> PoolPhase::act(Action action, ActContext& context) {
  const auto* pool = poolOf(action.facet.subject);
  if (!pool) co_return Blocked{fmt::format("{} has no pool in the inventory", action.facet.subject.str())};
  if (action.to == lifecycle::kPoolDrained) {
    auto run = drain(action.facet.subject.node(), slurmOf(*pool), std::string(kDrainReasonPrefix) + action.reason, context);
    co_return co_await std::move(run);
  }
  auto run = join(action.facet.subject.node(), *pool, context);
  co_return co_await std::move(run);
}

/// The key travels in the task only: it is in no log, plan or event.
Result<agent::AgentTask> PoolPhase::joinTask(const inventory::Pool& pool, const std::string& id) const {
  auto conf = io::readFile(options_.slurm_node_conf.empty() ? confOf(pool) : options_.slurm_node_conf, kMaxConfBytes);
  if (!conf) return fail(std::move(conf).error().within("slurm.conf for the nodes"));
  auto key = io::readFile(options_.munge_key, kMaxMungeKeyBytes);
  if (!key) return fail(std::move(key).error().within("munge key"));
  nlohmann::json params = {{"kind", "slurm"}, {"conf", *conf}, {"munge_key", io::toBase64(*key)}};
  return agent::AgentTask{id, agent::TaskKind::JoinPool, params.dump(), kJoinTask};
}

/// Called again until slurmd has registered; every step looks first, and the agent's task runs once for an intent.
Async<Outcome> PoolPhase::join(NodeName node, const inventory::Pool& pool, ActContext& context) {
  if (auto valid = certificates_.requireValid(node); !valid) {
    if (valid.error().code() == ErrorCode::Denied)
      co_return Blocked{fmt::format("{} may not join pool {}: {}", node.str(), pool.name, valid.error().text())};
    co_return fail(std::move(valid).error().within("certificate"));
  }
  auto slurm = slurmOf(pool);
  auto ask = slurm.node(node.str());
  CO_TRY(known, co_await std::move(ask));
  if (!known)
    co_return Blocked{
        fmt::format("{} does not name node {}; add it there and run `scontrol reconfigure`", confOf(pool).string(), node.str())};
  if (known->takesJobs()) co_return Done{};
  if (known->draining() && !known->reason.starts_with(kDrainReasonPrefix))
    co_return Blocked{
        fmt::format("{} was drained by a person: '{}'; resume it by hand when it may take jobs again", node.str(), known->reason)};
  context.progress(0.2, "starting munge and slurmd");
  CO_TRY(task, joinTask(pool, context.intentId()));
  auto run = agents_.runTask(node, std::move(task));
  CO_TRY_OK(co_await std::move(run));
  auto last = admit(node, std::move(slurm), context);
  co_return co_await std::move(last);
}

/// slurmd runs. A node that is down or drained must be resumed; one that is silent comes back by itself.
Async<Outcome> PoolPhase::admit(NodeName node, Slurm slurm, ActContext& context) {
  auto ask = slurm.node(node.str());
  CO_TRY(known, co_await std::move(ask));
  if (!known) co_return fail(ErrorCode::Unavailable, fmt::format("slurmctld no longer knows {}", node.str()));
  if (known->takesJobs()) co_return Done{};
  context.progress(0.7, known->state());
  if (!known->slurmd_was_seen) co_return Again{kRegisterPoll, fmt::format("slurmd of {} to register", node.str())};
  if (known->down() || known->draining()) {
    auto resume = slurm.resume(node.str());
    CO_TRY_OK(co_await std::move(resume));
  }
  co_return Again{kRegisterPoll, fmt::format("{} to be idle (now {})", node.str(), known->state())};
}

Async<Outcome> PoolPhase::drain(NodeName node, Slurm slurm, std::string reason, ActContext& context) {
  auto ask = slurm.node(node.str());
  CO_TRY(known, co_await std::move(ask));
  if (!known) co_return Blocked{fmt::format("slurm.conf does not name {}, so it cannot be drained", node.str())};
  if (!known->draining()) {
    auto order = slurm.drain(node.str(), std::move(reason));
    CO_TRY_OK(co_await std::move(order));
    context.progress(0.1, "no new jobs start");
    co_return Again{kRegisterPoll, "running jobs to end"};
  }
  if (!known->hasJobs()) co_return Done{};
  co_return Again{kDrainPoll, fmt::format("running jobs to end ({} CPUs busy)", known->allocated_cpus)};
}

}  // namespace

std::unique_ptr<lifecycle::Phase> makePoolPhase(const inventory::Cluster& cluster, agent::AgentGateway& agents,
                                                const lifecycle::CertificateGate& certificates, io::ProcessRunner& processes, Clock& clock,
                                                PoolOptions options) {
  return std::make_unique<PoolPhase>(cluster, agents, certificates, processes, clock, std::move(options));
}

}  // namespace muster::pool
