// SPDX-License-Identifier: Apache-2.0
// The firmware phase: what the baseline wants, in the solver's order; what the BMC shows; one
// installation an action.
#include "base/async/deadline.h"
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "firmware/firmware.h"
#include "firmware/in_band.h"
#include "firmware/installation.h"
#include "firmware/pending_images.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/images.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/fact_source.h"
#include "lifecycle/model/orphaned_operation.h"

#include <algorithm>
#include <set>

namespace muster::firmware {

using namespace std::chrono_literals;
using inventory::FirmwareBaseline;
using inventory::FirmwareComponent;
using lifecycle::ActContext;
using lifecycle::Action;
using lifecycle::FacetRef;
using lifecycle::Fact;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Subject;

namespace {

constexpr auto kDeadline = 60min;  ///< beyond what is expected
constexpr auto kObserveLimit = 5min;
constexpr auto kAgentPoll = 10s;
constexpr auto kBeforeTheEnd =
    2min;  ///< of the engine's deadline an act ends by itself, whatever it is waiting for
constexpr auto kLookAfterLimit = 100s;      ///< within the engine's limit of a verification: what
                                            ///< failed must be told, whatever the BMC answers
constexpr std::size_t kMaxExtraFacts = 64;  ///< components that only constraints name

class FirmwarePhase final : public lifecycle::Phase {
 public:
  FirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock,
                Workers& workers, std::string image_url, gateway::AgentGateway* agents)
      : cluster_(cluster),
        bmcs_(bmcs),
        clock_(clock),
        files_(workers),
        image_url_(std::move(image_url)),
        agents_(agents),
        began_(clock.now()) {}

  std::string_view name() const override { return "firmware"; }

  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const lifecycle::FactSet& facts) const override {
    std::vector<Goal> goals;
    const auto* baseline = baselineOf(cluster, subject);
    if (!baseline) return goals;
    const UpgradePath path =
        upgradePathOf(*baseline, runningBy(facts, subject), measuredBy(facts, subject));
    std::optional<FacetRef> before;
    const auto pending = pendingImagesOf(facts, subject);
    for (auto& goal : cancelStagedGoals(pending, subject, *baseline)) {
      goal.after.push_back(lifecycle::Stage::Enrollment);
      if (before) goal.needs.push_back(*before);
      before = goal.facet;
      goals.push_back(std::move(goal));
    }
    for (const bool in_band :
         {false,
          true}) {  // what goes by the BMC comes before there is a system; the rest needs one
      for (const auto& step : path.steps) {
        if (inventory::isInBand(*step.component) != in_band) continue;
        goals.push_back(goalOf(cluster, subject, facts, pending, *baseline, step));
        goals.back().after.push_back(lifecycle::Stage::Enrollment);
        if (before) goals.back().needs.push_back(*before);
        before = goals.back().facet;
      }
    }
    return goals;
  }

  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> facts;
    const auto* baseline = baselineOf(cluster_, subject);
    if (!baseline) co_return facts;
    bmc::Bmc& bmc = bmcs_.at(subject.node());
    auto inventory = bmc.firmware();
    auto seen = co_await withDeadline<std::vector<bmc::FirmwareItem>>(
        clock_, kObserveLimit, "the firmware inventory of " + subject.str(), std::move(inventory));
    if (!seen) co_return fail(std::move(seen.error()).within("firmware of " + subject.str()));
    std::size_t extra = 0;
    for (const auto& item : *seen) {
      if (item.version.empty()) continue;
      const auto* component = baseline->find(item.name);
      if (component && inventory::isInBand(*component)) continue;
      const bool declared = component != nullptr;
      if (!declared && (!isConstrained(*baseline, item.name) || ++extra > kMaxExtraFacts)) continue;
      facts.push_back(Fact{subject, facetOf(item.name), item.version, clock_.now(),
                           "redfish " + bmc.address(), evidenceOf(item)});
    }
    if (hasInBand(*baseline) && agents_) {
      const auto devices = co_await listInBand(*agents_, clock_, subject.node(), *baseline);
      for (const auto& item : inBandItems(*baseline, devices))
        if (item.unreadable.empty())
          facts.push_back(Fact{subject,
                               facetOf(item.name),
                               item.version,
                               clock_.now(),
                               lifecycle::agentSource(subject),
                               {}});
    }
    for (const auto& component : baseline->components) {
      if (component.file.empty()) continue;
      CO_TRY(state, co_await files_.state(component));
      facts.push_back(Fact{subject,
                           fileFacet(component.name),
                           state,
                           clock_.now(),
                           "file " + component.file.string(),
                           {}});
    }
    co_return facts;
  }

  Async<Outcome> act(Action action, ActContext& context) override {
    const Subject subject = action.facet.subject;
    const auto* baseline = baselineOf(cluster_, subject);
    if (baseline && !stagedComponentOf(action.facet.facet).empty()) {
      co_return co_await cancelStagedOnly(stagedComponentOf(action.facet.facet), subject, *baseline,
                                          context);
    }
    const auto* component = baseline ? baseline->find(componentOf(action.facet.facet)) : nullptr;
    if (!component || component->version != action.to)
      co_return fail(ErrorCode::InvalidInput,
                     fmt::format("the inventory does not declare {} {} for {} any more; plan again",
                                 componentOf(action.facet.facet), action.to, subject.str()));
    CO_TRY(progress, Progress::parse(context.operation()));
    const bool resumed =
        released_.contains(subject) && released_.at(subject).intent == context.intentId();
    if (context.operation().empty() && !resumed) {  // between two waves it is empty again
      CO_TRY(first,
             co_await resumePendingImages(*component, subject, *baseline, context, progress));
      if (!std::holds_alternative<lifecycle::Done>(first)) co_return first;
    } else if (!resumed) {  // an earlier process has taken over what it knew of
      releasePending(subject, context.intentId(),
                     pendingImagesOf(context.facts(), subject, began_));
    }
    auto remember = [this, subject](const std::string& failed, std::string why) {
      failed_[subject][failed] = std::move(why);
    };
    bmc::Bmc& bmc = bmcs_.at(subject.node());
    std::optional<InBand> with_agent;
    if (hasInBand(*baseline) && agents_)
      with_agent.emplace(
          bmc, *agents_, clock_, *baseline,
          InBand::Context{subject.node(), context.intentId(), image_url_,
                          progress.current.empty() ? component->name : progress.current.component});
    auto& stopwatch = stopwatches_[subject];
    const auto began =
        stopwatch.intent == context.intentId() ? stopwatch.intent_began : clock_.steady();
    const InstallServices services{with_agent ? static_cast<bmc::Bmc&>(*with_agent) : bmc,
                                   clock_,
                                   files_,
                                   image_url_,
                                   std::move(remember),
                                   stopwatch};
    Installation installation(services, *baseline, *component, action, context,
                              std::move(progress));
    auto work = installation.go();
    if (action.deadline <= 2 * kBeforeTheEnd) co_return co_await std::move(work);
    // Called off from outside, an upload of half an hour would take with it what is known of those
    // before it.
    const auto remaining = std::max<std::chrono::milliseconds>(
        1s, std::chrono::floor<std::chrono::milliseconds>(began + action.deadline - kBeforeTheEnd -
                                                          clock_.steady()));
    auto outcome = co_await withDeadline<Outcome>(clock_, remaining, action.id, std::move(work));
    if (outcome || outcome.error().code() != ErrorCode::Timeout ||
        clock_.steady() < began + action.deadline - kBeforeTheEnd)
      co_return outcome;
    CO_TRY(reached, Progress::parse(context.operation()));
    if (reached.step == InstallStep::Over ||
        (reached.step == InstallStep::Look && reached.staged.empty()))
      co_return outcome;
    Installation late(services, *baseline, *component, action, context, std::move(reached));
    co_return co_await late.abortWith("it was not finished in time; last: " +
                                      outcome.error().str());
  }

  /// What failed for good becomes a fact together with what is seen, so that no later plan flashes
  /// it again by itself.
  Async<std::vector<Fact>> verify(Action action) override {
    const auto& subject = action.facet.subject;
    auto seen = co_await withDeadline<std::vector<Fact>>(
        clock_, kLookAfterLimit, "the firmware of " + subject.str(), observe(subject));
    const auto failed = failed_.extract(subject);
    const auto took = std::exchange(stopwatches_[subject].took, {});
    const auto released = released_.extract(subject);
    const bool cancels = released && !stagedComponentOf(action.facet.facet).empty();
    if (!failed && took.empty() && !cancels && (!released || released.mapped().facets.empty()))
      co_return seen;
    auto facts = seen.value_or(std::vector<Fact>());
    if (released)
      for (const auto& facet : released.mapped().facets)
        facts.push_back(
            Fact{subject, facet, lifecycle::kNoOrphanedOperation, clock_.now(), "muster", {}});
    if (cancels)
      facts.push_back(Fact{subject, action.facet.facet, action.to, clock_.now(), "muster", {}});
    if (failed)
      for (const auto& [name, why] : failed.mapped())
        facts.push_back(Fact{subject, failedFacet(name), why, clock_.now(), "muster", {}});
    for (const auto& [name, time] : took)
      facts.push_back(
          Fact{subject, tookFacet(name), std::to_string(time.count()), clock_.now(), "muster", {}});
    co_return facts;
  }

  bool resumesAfterMet() const override { return true; }

 private:
  static Goal goalOf(const inventory::Cluster& cluster, const Subject& subject,
                     const lifecycle::FactSet& facts, const PendingImages& pending,
                     const FirmwareBaseline& baseline, const PathStep& step) {
    const auto& component = *step.component;
    Goal goal;
    goal.facet = {subject, facetOf(component.name)};
    goal.want = component.version;
    goal.disruption =
        component.file.empty() ? lifecycle::Disruption::None : lifecycle::Disruption::Reset;
    goal.blocked = whyNotFlashable(baseline, component, subject, facts);
    if (goal.blocked.empty() && !step.impossible.empty())
      goal.blocked = fmt::format("{} {} cannot be installed: {}", component.name, component.version,
                                 step.impossible);
    if (goal.blocked.empty()) goal.blocked = whyNotAgain(component, subject, facts, pending);
    goal.expected = step.expected;
    goal.deadline = kDeadline + 2 * step.expected;
    if (inventory::isInBand(component)) goal.stage = lifecycle::Stage::InBandFirmware;
    if (inventory::isInBand(component) &&
        !cluster.profileOf(*cluster.findNode(subject.node())).image.empty())
      goal.after.push_back(lifecycle::Stage::Boot);
    goal.why =
        fmt::format("baseline {} has {} {}", baseline.name, component.name, component.version);
    return goal;
  }

  /// Nothing that nobody wants may wait for a restart that this phase, or any other, is about to
  /// make.
  Async<Outcome> cancelUnwanted(Subject subject, const FirmwareBaseline& baseline,
                                const PendingImages& pending) {
    auto unwanted = unwantedOf(pending, baseline);
    for (const auto& each : unwanted) {
      if (each.task.empty() || !agents_) continue;
      const auto report = agents_->report(subject.node(), each.task.substr(kAgentTask.size()));
      if (report && !wire::isFinished(report->phase))
        co_return lifecycle::Again{
            kAgentPoll,
            fmt::format("the node's agent to end writing {} {}, which an abandoned action has sent",
                        each.image.component, each.image.version)};
    }
    if (unwanted.empty()) co_return lifecycle::Done{};
    CO_TRY(why_not,
           co_await cancelStaged(bmcs_.at(subject.node()), std::move(unwanted), subject.str()));
    if (!why_not.empty()) co_return lifecycle::Blocked{why_not};
    co_return lifecycle::Done{};
  }

  /// What is wanted, or has an action of its own, is still told of by the facts.
  Async<Outcome> cancelStagedOnly(std::string component, Subject subject,
                                  const FirmwareBaseline& baseline, ActContext& context) {
    const auto pending = pendingImagesOf(context.facts(), subject);
    CO_TRY(seen, co_await cancelUnwanted(subject, baseline, pending));
    if (!std::holds_alternative<lifecycle::Done>(seen)) co_return seen;
    const bool last =
        std::all_of(pending.images.begin(), pending.images.end(),
                    [&](const Target& image) { return image.component == component; });
    releasePending(subject, context.intentId(), last ? pending : PendingImages{});
    co_return lifecycle::Done{};
  }

  /// The journal knows of it before the facts are let go of.
  Async<Outcome> resumePendingImages(const FirmwareComponent& component, Subject subject,
                                     const FirmwareBaseline& baseline, ActContext& context,
                                     Progress& progress) {
    auto pending = pendingImagesOf(context.facts(), subject);
    if (auto again = whyNotAgain(component, subject, context.facts(), pending);
        !again.empty() && !pending.images.empty())
      co_return lifecycle::Blocked{std::move(again)};
    CO_TRY(seen, co_await cancelUnwanted(subject, baseline, pending));
    if (!std::holds_alternative<lifecycle::Done>(seen)) co_return seen;
    const auto all = pending;
    std::erase_if(pending.images, [&](const Target& image) { return !isWanted(baseline, image); });
    progress = resumeFrom(pending);
    if (progress.step != InstallStep::Look) {
      CO_TRY_OK(co_await context.recordOperation(progress.str()));
    }
    releasePending(subject, context.intentId(), all);
    co_return lifecycle::Done{};
  }

  void releasePending(const Subject& subject, const std::string& intent,
                      const PendingImages& pending) {
    released_[subject] = {intent, pending.facets};
    for (const auto& failure : pending.failed)
      failed_[subject].try_emplace(failure.target.component,
                                   failure.target.version + " " + failure.why);
  }

  static bool isConstrained(const FirmwareBaseline& baseline, const std::string& name) {
    return std::any_of(baseline.constraints.begin(), baseline.constraints.end(),
                       [&](const inventory::FirmwareConstraint& constraint) {
                         return lifecycle::matches(constraint.when.component, name) ||
                                lifecycle::matches(constraint.then.component, name);
                       });
  }

  const inventory::Cluster& cluster_;
  bmc::BmcFleet& bmcs_;
  Clock& clock_;
  FirmwareFiles files_;
  std::map<Subject, InstallStopwatch> stopwatches_;
  std::map<Subject, std::map<std::string, std::string>>
      failed_;  ///< of acts that have just ended: component → "VERSION REASON"
  struct Released {
    std::string intent;
    std::vector<FacetName> facets;
  };
  std::map<Subject, Released> released_;  ///< facts of abandoned actions that an act has seen to
  std::string image_url_;
  gateway::AgentGateway* agents_;
  WallTime began_;  ///< facts from before this were there for an act that another process began
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeFirmwarePhase(const inventory::Cluster& cluster,
                                                    bmc::BmcFleet& bmcs, Clock& clock,
                                                    Workers& workers, std::string image_url,
                                                    gateway::AgentGateway* agents) {
  return std::make_unique<FirmwarePhase>(cluster, bmcs, clock, workers, std::move(image_url),
                                         agents);
}

}  // namespace muster::firmware
