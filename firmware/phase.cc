// The firmware phase: what the baseline wants, in the solver's order; what the BMC shows; one installation an action.
#include "base/deadline.h"
#include "firmware/baselines.h"
#include "firmware/files.h"
#include "firmware/firmware.h"
#include "firmware/installation.h"

#include <algorithm>
#include <set>

namespace muster::firmware {

using namespace std::chrono_literals;
using inventory::FirmwareBaseline;
using inventory::FirmwareComponent;
using lifecycle::Action;
using lifecycle::ActContext;
using lifecycle::Fact;
using lifecycle::FacetRef;
using lifecycle::Goal;
using lifecycle::Outcome;
using lifecycle::Subject;

namespace {

constexpr auto kDeadline = 60min;       ///< beyond what is expected
constexpr auto kObserveLimit = 5min;
constexpr std::size_t kMaxExtraFacts = 64;  ///< components that only constraints name

class FirmwarePhase final : public lifecycle::Phase {
 public:
  FirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock, Workers& workers, std::string image_url)
      : cluster_(cluster), bmcs_(bmcs), clock_(clock), files_(workers), image_url_(std::move(image_url)) {}

  std::string_view name() const override { return "firmware"; }

  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject, const lifecycle::FactSet& facts) const override {
    std::vector<Goal> goals;
    const auto* baseline = baselineOf(cluster, subject);
    if (!baseline) return goals;
    const Road road = roadOf(*baseline, runningBy(facts, subject), learntBy(facts, subject));
    FacetRef before{subject, FacetName("enrolled")};
    for (const auto& stop : road.stops) {
      Goal goal;
      goal.facet = {subject, facetOf(stop.component->name)};
      goal.want = stop.component->version;
      goal.disruption = stop.component->file.empty() ? lifecycle::Disruption::None : lifecycle::Disruption::Reset;
      goal.blocked = whyNotFlashable(*baseline, *stop.component, subject, facts);
      if (goal.blocked.empty() && !stop.impossible.empty()) goal.blocked = fmt::format("{} {} cannot be installed: {}", stop.component->name, stop.component->version, stop.impossible);
      if (goal.blocked.empty()) goal.blocked = whyNotAgain(*stop.component, subject, facts);
      goal.expected = stop.expected;
      goal.deadline = kDeadline + 2 * stop.expected;
      goal.needs.push_back(before);
      if (before.facet != FacetName("enrolled")) goal.needs.push_back({subject, FacetName("enrolled")});
      goal.why = fmt::format("baseline {} has {} {}", baseline->name, stop.component->name, stop.component->version);
      before = goal.facet;
      goals.push_back(std::move(goal));
    }
    return goals;
  }

  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> facts;
    const auto* baseline = baselineOf(cluster_, subject);
    if (!baseline) co_return facts;
    bmc::Bmc& bmc = bmcs_.at(subject.node());
    auto inventory = bmc.firmware();
    auto read = withDeadline<std::vector<bmc::FirmwareItem>>(clock_, kObserveLimit, "the firmware inventory of " + subject.str(), std::move(inventory));
    auto seen = co_await std::move(read);
    if (!seen) co_return fail(std::move(seen.error()).within("firmware of " + subject.str()));
    std::size_t extra = 0;
    for (const auto& item : *seen) {
      if (item.version.empty()) continue;
      const bool declared = baseline->find(item.name) != nullptr;
      if (!declared && (!isConstrained(*baseline, item.name) || ++extra > kMaxExtraFacts)) continue;
      facts.push_back(Fact{subject, facetOf(item.name), item.version, clock_.now(), "redfish " + bmc.address(), {}});
    }
    for (const auto& component : baseline->components) {
      if (component.file.empty()) continue;
      auto look = files_.state(component);
      CO_TRY(state, co_await std::move(look));
      facts.push_back(Fact{subject, fileFacet(component.name), state, clock_.now(), "file " + component.file.string(), {}});
    }
    co_return facts;
  }

  Async<Outcome> act(Action action, ActContext& context) override {
    const Subject subject = action.facet.subject;
    const auto* baseline = baselineOf(cluster_, subject);
    const auto* component = baseline ? baseline->find(componentOf(action.facet.facet)) : nullptr;
    if (!component || component->version != action.to)
      co_return fail(ErrorCode::InvalidInput, fmt::format("the inventory does not declare {} {} for {} any more; plan again", componentOf(action.facet.facet), action.to, subject.str()));
    CO_TRY(progress, Progress::parse(context.operation()));
    auto remember = [this, subject](const std::string& failed, std::string why) { failed_[subject][failed] = std::move(why); };
    Installation installation({bmcs_.at(subject.node()), clock_, files_, image_url_, std::move(remember), stopwatches_[subject]}, *baseline, *component, action, context, std::move(progress));
    auto work = installation.go();
    co_return co_await std::move(work);
  }

  /// What failed for good becomes a fact together with what is seen, so that no later plan flashes it again by itself.
  Async<std::vector<Fact>> verify(Action action) override {
    auto look = observe(action.facet.subject);
    auto seen = co_await std::move(look);
    const auto& subject = action.facet.subject;
    const auto failed = failed_.extract(subject);
    const auto took = std::exchange(stopwatches_[subject].took, {});
    if (!failed && took.empty()) co_return seen;
    auto facts = seen.value_or(std::vector<Fact>());
    if (failed)
      for (const auto& [name, why] : failed.mapped()) facts.push_back(Fact{subject, failedFacet(name), why, clock_.now(), "muster", {}});
    for (const auto& [name, time] : took) facts.push_back(Fact{subject, tookFacet(name), std::to_string(time.count()), clock_.now(), "muster", {}});
    co_return facts;
  }

  bool drivesOn() const override { return true; }

 private:
  static bool isConstrained(const FirmwareBaseline& baseline, const std::string& name) {
    return std::any_of(baseline.constraints.begin(), baseline.constraints.end(), [&](const inventory::FirmwareConstraint& constraint) {
      return lifecycle::matches(constraint.when.component, name) || lifecycle::matches(constraint.then.component, name);
    });
  }

  const inventory::Cluster& cluster_;
  bmc::BmcFleet& bmcs_;
  Clock& clock_;
  FirmwareFiles files_;
  std::map<Subject, Installation::Stopwatch> stopwatches_;
  std::map<Subject, std::map<std::string, std::string>> failed_;  ///< of acts that have just ended: component → "VERSION REASON"
  std::string image_url_;
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeFirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock, Workers& workers, std::string image_url) {
  return std::make_unique<FirmwarePhase>(cluster, bmcs, clock, workers, std::move(image_url));
}

}  // namespace muster::firmware
