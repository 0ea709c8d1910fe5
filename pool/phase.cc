// SPDX-License-Identifier: Apache-2.0
// PoolPhase: a node joins its pool only with a valid certificate; drain is the inverse. Which
// scheduler the pool has is behind the seam in scheduler.h.
//
// The fact `pool` answers one question: may something that disturbs the node be done now?
//   in       work runs there or can start there (also while it drains: what ran is still running)
//   drained  it was taken out and nothing runs there
//   silent   the scheduler does not hear it, but starts work there as soon as it does
//   out      nothing starts there for another reason (down, not known to the scheduler)
#include "base/json_output.h"
#include "inventory/model/cluster.h"
#include "inventory/model/pools.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/action_cause.h"
#include "lifecycle/model/plan.h"
#include "lifecycle/model/pool_hold.h"
#include "lifecycle/model/quarantine.h"
#include "pool/drain_deadline.h"
#include "pool/kube_scheduler.h"
#include "pool/pool.h"
#include "pool/scheduler.h"
#include "pool/slurm_scheduler.h"

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
constexpr std::chrono::milliseconds kRegisterPoll{2000};
constexpr std::chrono::milliseconds kFirstLook{500};
constexpr std::chrono::milliseconds kAskAgain{15'000};  ///< a scheduler that does not answer
constexpr std::size_t kNamedWork = 8;                   ///< of what holds a drain, in one message

std::string_view poolValue(const std::optional<Member>& member) {
  if (!member) return kOut;
  if (member->has_work || member->takes_work) return lifecycle::kPoolIn;
  if (member->silent) return lifecycle::kPoolSilent;
  return member->draining ? lifecycle::kPoolDrained : kOut;
}

/// What a person's drain says, for kPoolHoldFacet. Nothing of it changes while the drain lasts.
std::string holdOf(const std::optional<Member>& member) {
  if (!member || !member->by_person) return std::string(lifecycle::kPoolNotHeld);
  auto words = member->reason.empty() ? std::string("no reason given") : "'" + member->reason + "'";
  if (!member->ordered_by.empty()) words += ", by " + member->ordered_by;
  if (member->draining_since) words += ", since " + toString(*member->draining_since);
  return words;
}

std::string joined(const std::vector<std::string>& work) {
  const auto shown = std::min(work.size(), kNamedWork);
  auto text = fmt::format(
      "{}", fmt::join(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(shown), "; "));
  if (shown < work.size()) text += fmt::format("; and {} more", work.size() - shown);
  return text;
}

/// A scheduler that is away for a while changes nothing about the node: it stays as it is, and is
/// asked again.
Result<Outcome> orAgain(Error error) {
  if (error.code() != ErrorCode::Unavailable && error.code() != ErrorCode::Timeout)
    return fail(std::move(error));
  return Again{kAskAgain, error.str(), true};
}

class PoolPhase final : public lifecycle::Phase {
 public:
  PoolPhase(const inventory::Cluster& cluster, gateway::AgentGateway& agents,
            const lifecycle::CertificateGate& certificates, io::ProcessRunner& processes,
            Clock& clock, PoolOptions options)
      : cluster_(cluster), certificates_(certificates), clock_(clock), deadline_(clock) {
    for (const auto& [name, pool] : cluster.pools) {
      if (pool.slurm)
        schedulers_[name] =
            std::make_unique<SlurmScheduler>(cluster, pool, agents, processes, clock, options);
      else if (pool.kubernetes)
        schedulers_[name] = std::make_unique<KubeScheduler>(*pool.kubernetes, options.http, clock);
    }
  }

  std::string_view name() const override { return "pool"; }
  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const lifecycle::FactSet& facts) const override;
  Async<std::vector<Fact>> observe(Subject subject) override;
  Async<Outcome> act(Action action, ActContext& context) override;
  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

 private:
  const inventory::Pool* poolOf(const Subject& subject) const;
  Async<Outcome> join(NodeName node, const inventory::Pool& pool, ActContext& context);
  Async<Outcome> drain(NodeName node, const inventory::Pool& pool, std::string reason,
                       ActContext& context);
  Async<Outcome> overdue(NodeName node, const inventory::Pool& pool, Member member,
                         std::string held, ActContext& context);

  const inventory::Cluster& cluster_;
  const lifecycle::CertificateGate& certificates_;
  Clock& clock_;
  std::map<std::string, std::unique_ptr<Scheduler>> schedulers_;  // by pool
  DrainDeadline deadline_;
};

const inventory::Pool* PoolPhase::poolOf(const Subject& subject) const {
  if (subject.isCluster()) return nullptr;
  const auto* node = cluster_.findNode(subject.node());
  if (!node) return nullptr;
  auto pool = cluster_.pools.find(cluster_.profileOf(*node).pool);
  return pool == cluster_.pools.end() || !schedulers_.contains(pool->first) ? nullptr
                                                                            : &pool->second;
}

std::vector<Goal> PoolPhase::goals(const inventory::Cluster& cluster, const Subject& subject,
                                   const lifecycle::FactSet& facts) const {
  const auto* pool = poolOf(subject);
  if (!pool) return {};
  FacetRef facet{subject, FacetName(std::string(lifecycle::kPoolFacet))};
  const auto& profile = cluster.profileOf(*cluster.findNode(subject.node()));
  if (facts.value(subject, FacetName(std::string(lifecycle::kQuarantineFacet))) ==
      lifecycle::kQuarantineHeld)
    return {{facet,
             std::string(lifecycle::kPoolDrained),
             lifecycle::Disruption::None,
             lifecycle::kDrainExpected,
             lifecycle::drainDeadlineOf(cluster, subject),
             {},
             fmt::format("it is in quarantine; {}",
                         lifecycle::quarantineRemoveAdvice(subject.node()))}};
  const auto hold = lifecycle::poolHoldOf(facts, subject);
  return {{facet,
           std::string(lifecycle::kPoolIn),
           lifecycle::Disruption::None,
           {},
           {},
           {},
           fmt::format("profile {} belongs to pool {} ({})", profile.name, pool->name,
                       schedulers_.at(pool->name)->describe()),
           hold ? fmt::format("{} was drained by a person ({}); resume it by hand when it may take "
                              "jobs again",
                              subject.str(), *hold)
                : std::string(),
           {lifecycle::Stage::Certificate}}};
}

Async<std::vector<Fact>> PoolPhase::observe(Subject subject) {
  std::vector<Fact> facts;
  const auto* pool = poolOf(subject);
  if (!pool) co_return facts;
  auto& scheduler = *schedulers_.at(pool->name);
  CO_TRY(member, co_await scheduler.look(subject.node()));
  nlohmann::json evidence = {
      {"state", member ? member->state : scheduler.unknownNode(subject.node())}};
  evidence["jobs"] =
      member && member->has_work;  // read by whoever would disturb the node (validate's pair tests)
  evidence["ordered"] = member && member->ordered;  // read by the monitor
  evidence["by_person"] = member && member->by_person;
  if (member && !member->reason.empty()) evidence["reason"] = member->reason;
  if (member && member->reason.starts_with(kDrainReasonPrefix)) {
    const auto reason = lifecycle::parsePoolReason(
        std::string_view(member->reason).substr(kDrainReasonPrefix.size()));
    evidence["cause"] = lifecycle::toString(reason.cause);
    if (!reason.about.empty()) evidence["about"] = reason.about;
  }
  facts.push_back({subject, FacetName(std::string(lifecycle::kPoolFacet)),
                   std::string(poolValue(member)), clock_.now(), scheduler.source(),
                   jsonText(evidence)});
  facts.push_back({subject, FacetName(std::string(lifecycle::kPoolHoldFacet)), holdOf(member),
                   clock_.now(), scheduler.source(), ""});
  co_return facts;
}

Async<Outcome> PoolPhase::act(Action action, ActContext& context) {
  const auto* pool = poolOf(action.facet.subject);
  if (!pool)
    co_return Blocked{fmt::format("{} has no pool in the inventory", action.facet.subject.str())};
  const auto node = action.facet.subject.node();
  co_return co_await (
      action.to == lifecycle::kPoolDrained
          ? drain(node, *pool,
                  std::string(kDrainReasonPrefix) +
                      lifecycle::print({action.cause, action.about.str(), action.reason}),
                  context)
          : join(node, *pool, context));
}

Async<Outcome> PoolPhase::join(NodeName node, const inventory::Pool& pool, ActContext& context) {
  if (auto valid = certificates_.requireValid(node); !valid) {
    if (valid.error().code() == ErrorCode::Denied)
      co_return Blocked{
          fmt::format("{} may not join pool {}: {}", node.str(), pool.name, valid.error().text())};
    co_return fail(std::move(valid).error().within("certificate"));
  }
  auto& scheduler = *schedulers_.at(pool.name);
  auto looked = co_await scheduler.look(node);
  if (!looked) co_return orAgain(std::move(looked).error());
  auto& member = *looked;
  if (!member && scheduler.registersItself())
    co_return Again{kRegisterPoll, scheduler.unknownNode(node)};
  if (!member) co_return Blocked{scheduler.unknownNode(node)};
  if (member->takes_work) co_return Done{};
  if (member->by_person)
    co_return Blocked{fmt::format(
        "{} was drained by a person ({}): '{}'; resume it by hand when it may take jobs again",
        node.str(), member->state, member->reason)};
  co_return co_await scheduler.admit(node, context);
}

Async<Outcome> PoolPhase::drain(NodeName node, const inventory::Pool& pool, std::string reason,
                                ActContext& context) {
  auto& scheduler = *schedulers_.at(pool.name);
  auto looked = co_await scheduler.look(node);
  if (!looked) co_return orAgain(std::move(looked).error());
  auto& member = *looked;
  if (!member)
    co_return Blocked{fmt::format("{}; so it cannot be drained", scheduler.unknownNode(node))};
  if (!member->ordered) {
    if (auto ordered = co_await scheduler.close(node, std::move(reason)); !ordered)
      co_return orAgain(std::move(ordered).error());
    context.progress(0.1, "no new jobs start");
    co_return Again{kFirstLook, "running jobs to end"};
  }
  if (!member->has_work) co_return Done{};
  auto released = co_await scheduler.release(node);
  if (!released) co_return orAgain(std::move(released).error());
  const auto& remains = *released;
  if (remains.work.empty()) co_return Again{kFirstLook, "its last work to end"};
  const auto held = joined(remains.work);
  const bool is_over = deadline_.isOver(node, *member, pool.drain);
  if (is_over && !remains.all_leaving)
    co_return co_await overdue(node, pool, std::move(*member), held, context);
  co_return Again{remains.look_again, held};
}

/// The drain's own deadline has passed: the pool's policy, and a finding that says what was left.
Async<Outcome> PoolPhase::overdue(NodeName node, const inventory::Pool& pool, Member member,
                                  std::string held, ActContext& context) {
  auto& scheduler = *schedulers_.at(pool.name);
  const auto late = fmt::format("{} is not drained after {} minutes: {}", node.str(),
                                *pool.drain.deadline_minutes, held);
  auto say = [&context](std::string what, std::string advice) {
    lifecycle::Finding finding;
    finding.severity = Severity::Warning;
    finding.text = std::move(what);
    finding.what_to_do = std::move(advice);
    context.finding(std::move(finding));
  };
  auto policy = pool.drain.on_timeout;
  std::string why_stays = "it stays drained";
  if (policy == inventory::OnTimeout::Undrain) {
    auto valid = certificates_.requireValid(node);
    if (member.by_person) why_stays = "a person drained it, so it is not undrained";
    if (!valid) why_stays = fmt::format("it is not undrained, because {}", valid.error().text());
    if (!valid || member.by_person) policy = inventory::OnTimeout::Wait;
  }
  switch (policy) {
    case inventory::OnTimeout::Wait:
      say(late, "end the work that holds it, or plan again later; " + why_stays);
      co_return Blocked{fmt::format("{}; {}", late, why_stays)};
    case inventory::OnTimeout::Undrain: {
      CO_TRY_OK(co_await scheduler.reopen(node));
      say(late, "it was undrained, as the pool's drain policy says; plan again later");
      co_return Blocked{fmt::format("{}; it was undrained in pool {}", late, pool.name)};
    }
    case inventory::OnTimeout::DeletePods:
      break;
  }
  // Said before it is done: a crash in between leaves a finding too many, never a deed without one.
  say(late, "the remaining pods are deleted, as the pool's drain policy says");
  CO_TRY(ended, co_await scheduler.endWork(node));
  co_return Again{kRegisterPoll,
                  fmt::format("the pods deleted at the deadline to terminate: {}", joined(ended))};
}

}  // namespace

std::unique_ptr<lifecycle::Phase> makePoolPhase(const inventory::Cluster& cluster,
                                                gateway::AgentGateway& agents,
                                                const lifecycle::CertificateGate& certificates,
                                                io::ProcessRunner& processes, Clock& clock,
                                                PoolOptions options) {
  return std::make_unique<PoolPhase>(cluster, agents, certificates, processes, clock,
                                     std::move(options));
}

}  // namespace muster::pool
