// SPDX-License-Identifier: Apache-2.0
// BIOS settings: declared attributes are staged on the BMC, applied by a restart, and believed when
// they are read again.
//
// The facet `bios` is "A=x,B=y" over the declared attributes, so that a plan shows drift as it is.
// The journal's operation is "staged", "off" (power may have been switched off) or "on TIME" (power
// may be on again; from then on it is only ever switched on).
#include "base/async/deadline.h"
#include "base/async/poll.h"
#include "bmc/shut_down.h"
#include "firmware/baselines.h"
#include "firmware/firmware.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "inventory/model/profile.h"

#include <algorithm>

namespace muster::firmware {

using namespace std::chrono_literals;
using lifecycle::Again;
using lifecycle::Done;
using lifecycle::Outcome;
using lifecycle::Subject;

namespace {

const FacetName kBios("bios");
constexpr auto kObserveLimit = 2min;
constexpr auto kStabilizeLimit = 15min;  ///< a host shows its settings only after POST
constexpr std::chrono::milliseconds kBiosFirstLook = 300ms, kBiosStabilizePoll = 5s,
                                    kBiosBusyPoll = 60s;
constexpr std::string_view kMissing = "(none)";

using Attributes = std::map<std::string, std::string>;

std::string valueOf(const Attributes& declared, const Attributes& seen) {
  std::string out;
  for (const auto& [name, value] : declared) {
    const auto found = seen.find(name);
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", name,
                       found == seen.end() ? kMissing : std::string_view(found->second));
  }
  return out;
}

class BiosPhase final : public lifecycle::Phase {
 public:
  BiosPhase(const inventory::Cluster& cluster, bmc::BmcFleet& bmcs, Clock& clock)
      : cluster_(cluster), bmcs_(bmcs), clock_(clock) {}

  std::string_view name() const override { return "bios"; }

  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet& facts) const override {
    const auto* declared = declaredFor(cluster, subject);
    if (!declared) return {};
    lifecycle::Goal goal;
    goal.facet = {subject, kBios};
    goal.want = valueOf(*declared, *declared);
    goal.disruption = lifecycle::Disruption::Reset;
    goal.after = {lifecycle::Stage::Enrollment};
    if (const auto* baseline =
            baselineOf(cluster, subject))  // new firmware may bring its own defaults
      for (const auto& component : baseline->components)
        if (!component.file.empty()) goal.needs.push_back({subject, facetOf(component.name)});
    goal.why = fmt::format("profile {} declares {} BIOS attributes",
                           cluster.findNode(subject.node())->profile, declared->size());
    const auto now = facts.value(subject, kBios).value_or("");
    if (now.find(kMissing) != std::string::npos)
      goal.blocked = "this BIOS has not all of the declared attributes (" + now +
                     "); spell them as the BMC does";
    return {goal};
  }

  Async<std::vector<lifecycle::Fact>> observe(Subject subject) override {
    std::vector<lifecycle::Fact> facts;
    const auto* declared = declaredFor(cluster_, subject);
    if (!declared) co_return facts;
    auto& bmc = bmcs_.at(subject.node());
    auto attributes = bmc.biosAttributes();
    CO_TRY(seen, co_await withDeadline<Attributes>(clock_, kObserveLimit,
                                                   "the BIOS attributes of " + subject.str(),
                                                   std::move(attributes)));
    facts.push_back(
        {subject, kBios, valueOf(*declared, seen), clock_.now(), "redfish " + bmc.address(), {}});
    co_return facts;
  }

  Async<std::vector<lifecycle::Fact>> verify(lifecycle::Action action) override {
    return observe(action.facet.subject);
  }

  Async<Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    const auto* declared = declaredFor(cluster_, action.facet.subject);
    if (!declared || valueOf(*declared, *declared) != action.to)
      co_return fail(ErrorCode::InvalidInput,
                     "the inventory declares other BIOS attributes now; plan again");
    auto& bmc = bmcs_.at(action.facet.subject.node());
    const auto operation = context.operation();
    auto seen = co_await bmc.biosAttributes();
    if (!seen && !operation.empty() && seen.error().canRetry())
      co_return Again{kBiosStabilizePoll, "the BMC does not answer: " + seen.error().str()};
    if (!seen) co_return fail(std::move(seen.error()));
    if (valueOf(*declared, *seen) == action.to) co_return Done{};
    if (const auto since = switchedOnAt(operation)) {
      co_return co_await stabilize(bmc, context, action, *since, valueOf(*declared, *seen));
    }
    Attributes missing;
    for (const auto& [name, value] : *declared)
      if ((*seen)[name] != value) missing[name] = value;
    co_return co_await stageAndRestart(bmc, context, std::move(missing));
  }

 private:
  /// The time of an operation "on TIME"; nullopt: it has not come that far.
  static std::optional<std::string> switchedOnAt(const std::string& operation) {
    const auto blank = operation.find(' ');
    if (blank == std::string::npos || operation.substr(0, blank) != "on") return std::nullopt;
    return operation.substr(blank + 1);
  }

  static const Attributes* declaredFor(const inventory::Cluster& cluster, const Subject& subject) {
    const auto* node = subject.isCluster() ? nullptr : cluster.findNode(subject.node());
    if (!node || cluster.profileOf(*node).bios.empty()) return nullptr;
    return &cluster.profileOf(*node).bios;
  }

  Async<Outcome> stageAndRestart(bmc::Bmc& bmc, lifecycle::ActContext& context,
                                 Attributes missing) {
    auto staged = co_await bmc.stageBios(std::move(missing));
    if (!staged && staged.error().code() == ErrorCode::Conflict)
      co_return Again{kBiosBusyPoll, staged.error().str()};
    CO_TRY_OK(std::move(staged));
    CO_TRY_OK(co_await context.recordOperation("staged"));
    CO_TRY(system, co_await bmc.system());
    if (system.power != bmc::PowerState::Off) {
      CO_TRY_OK(co_await context.recordOperation("off"));
      CO_TRY_OK(co_await bmc::shutDown(bmc, clock_));
    }
    CO_TRY_OK(co_await context.recordOperation("on " + muster::toString(clock_.now())));
    CO_TRY_OK(co_await bmc.power(bmc::PowerAction::On));
    co_return Again{kBiosFirstLook, "its firmware to take over the settings"};
  }

  Async<Outcome> stabilize(bmc::Bmc& bmc, lifecycle::ActContext& context, lifecycle::Action action,
                           std::string since_text, std::string seen) {
    const auto since = parseWallTime(since_text);
    if (!since)
      co_return fail(ErrorCode::Corrupt,
                     "the journal holds an unknown BIOS operation: on " + since_text);
    auto on = bmc.power(bmc::PowerAction::On);  // nothing, when it is on
    CO_TRY_OK(co_await std::move(on));
    if (clock_.now() < *since + kStabilizeLimit)
      co_return Again{nextPollDelay(clock_.now() - *since, kBiosFirstLook, kBiosStabilizePoll),
                      "the settings to show; now " + seen};
    const auto text = fmt::format("the BIOS settings are not in force {} min after the restart",
                                  kStabilizeLimit.count());
    context.finding({action.facet, Severity::Error, text, seen,
                     "look at the BMC's log and at pending settings; some need a password or "
                     "another setting first",
                     clock_.now()});
    co_return fail(ErrorCode::Conflict, text + ": " + seen);
  }

  const inventory::Cluster& cluster_;
  bmc::BmcFleet& bmcs_;
  Clock& clock_;
};

}  // namespace

std::unique_ptr<lifecycle::Phase> makeBiosPhase(const inventory::Cluster& cluster,
                                                bmc::BmcFleet& bmcs, Clock& clock) {
  return std::make_unique<BiosPhase>(cluster, bmcs, clock);
}

}  // namespace muster::firmware
