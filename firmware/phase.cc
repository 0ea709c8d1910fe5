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
    const Road road = roadOf(*baseline, runningBy(facts, subject));
    FacetRef before{subject, FacetName("enrolled")};
    for (const auto& stop : road.stops) {
      Goal goal;
      goal.facet = {subject, facetOf(stop.component->name)};
      goal.want = stop.component->version;
      goal.disruption = stop.component->file.empty() ? lifecycle::Disruption::None : lifecycle::Disruption::Reset;
      goal.blocked = whyNotFlashable(*baseline, *stop.component, subject, facts);
      if (goal.blocked.empty() && !stop.impossible.empty()) goal.blocked = fmt::format("{} {} cannot be installed: {}", stop.component->name, stop.component->version, stop.impossible);
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
    Installation installation({bmcs_.at(subject.node()), clock_, files_, image_url_}, *baseline, *component, action, context, std::move(progress));
    auto work = installation.go();
    co_return co_await std::move(work);
  }

  Async<std::vector<Fact>> verify(Action action) override { return observe(action.facet.subject); }

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
  std::string image_url_;
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeFirmwarePhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock, Workers& workers, std::string image_url) {
  return std::make_unique<FirmwarePhase>(cluster, bmcs, clock, workers, std::move(image_url));
}

}  // namespace muster::firmware
