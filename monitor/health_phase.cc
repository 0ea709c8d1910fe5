// SPDX-License-Identifier: Apache-2.0
#include "monitor/health_phase.h"

#include "base/json_input.h"
#include "inventory/model/cluster.h"
#include "inventory/model/monitor.h"
#include "inventory/model/profile.h"
#include "lifecycle/model/facet_table.h"
#include "lifecycle/model/fact_source.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/quarantine.h"
#include "monitor/agent_liveness.h"
#include "monitor/health_history.h"
#include "monitor/kernel_evidence.h"
#include "monitor/symptoms.h"
#include "wire/health_rules.h"
#include "wire/task_params.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

namespace muster::monitor {
namespace {

using namespace lifecycle;
using std::chrono::seconds;
using wire::Symptom;

constexpr std::array<std::string_view, 4> kGroups = {"gpu", "disk", "network", "system"};
constexpr seconds kRebootExpected{300}, kRebootDeadline{1800}, kNoDeadline{60};
constexpr seconds kRebootTask{60}, kResetTask{300};
constexpr std::string_view kGpuReset =
    "gpu-reset:";  ///< begins the operation of a repair that needs no reboot; then the boot
constexpr std::chrono::milliseconds kBootPoll{5'000};
constexpr std::size_t kNamedSymptoms = 4;  ///< in a fact's value; all of them are in its evidence

struct AssessedSymptom {
  Symptom symptom;
  SymptomAssessment assessment;
};

bool needsReboot(std::string_view action) {
  return action == toString(HealthAction::Reset) || action == toString(HealthAction::Reboot);
}

/// Whether all that is wrong is that the agent cannot watch something. Before its driver is
/// installed that is so of every GPU, so a plan asks nothing of it: gates fail by themselves where
/// NVML does not answer, and the monitor drains a node that stays out of sight.
bool isOnlyBlind(std::string_view symptoms) {
  bool any = false;
  while (!symptoms.empty()) {
    if (!symptoms.starts_with(wire::kBlindPrefix)) return false;
    any = true;
    const auto comma = symptoms.find(',');
    symptoms = comma == std::string_view::npos ? std::string_view() : symptoms.substr(comma + 1);
  }
  return any;
}

FacetName facetOf(std::string_view group) {
  return FacetName(std::string(kHealthPrefix) + std::string(group));
}

class HealthPhase final : public Phase {
 public:
  HealthPhase(const inventory::Cluster& cluster, gateway::AgentGateway& agents, Store& store,
              Clock& clock, RestartCallback on_restart)
      : cluster_(cluster),
        agents_(agents),
        store_(store),
        clock_(clock),
        liveness_(cluster, store, clock),
        restart_notifier_(std::move(on_restart)) {}

  std::string_view name() const override { return "health"; }
  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const FactSet& facts) const override;
  Async<std::vector<Fact>> observe(Subject subject) override { co_return look(subject); }
  Async<Outcome> act(Action action, ActContext& context) override;
  Async<std::vector<Fact>> verify(Action action) override { co_return look(action.facet.subject); }

 private:
  Result<std::vector<Fact>> look(const Subject& subject);
  Result<std::vector<AssessedSymptom>> assessAll(const inventory::Node& node,
                                                 const gateway::AgentState& state,
                                                 HealthHistory& history);
  Fact factOf(const inventory::Node& node, const gateway::AgentState& state, std::string_view group,
              const std::vector<AssessedSymptom>& all) const;
  Goal goalOf(const Subject& subject, const Fact& fact, const inventory::MonitorPolicy& policy,
              int reboots) const;
  std::vector<std::string> resettable(const Action& action, const FactSet& facts,
                                      const gateway::AgentState& state,
                                      const HealthHistory& history) const;
  Result<void> forgetPasses(const Subject& subject, const FactSet& facts);
  Async<std::optional<Outcome>> resetGpus(NodeName node, Action action, ActContext& context);
  Async<Outcome> reboot(NodeName node, Subject subject, ActContext& context);

  const inventory::Cluster& cluster_;
  gateway::AgentGateway& agents_;
  Store& store_;
  Clock& clock_;
  AgentLiveness liveness_;
  RestartNotifier restart_notifier_;
};

Result<std::vector<AssessedSymptom>> HealthPhase::assessAll(const inventory::Node& node,
                                                            const gateway::AgentState& state,
                                                            HealthHistory& history) {
  std::vector<AssessedSymptom> out;
  bool news = false;
  const bool expects_gpus = cluster_.profileOf(node).expect.gpus.value_or(0) > 0;
  for (auto& symptom : wire::withBlindness(*state.health, expects_gpus)) {
    const auto key = symptom.id + "@" + symptom.device;
    const auto life = state.boot_id + (history.knowsGpuReset(state.boot_id)
                                           ? "+reset"
                                           : "");  // what comes back after a reset came back
    auto assessment = assess(symptom, history.bootsBefore(key, life), cluster_.monitor->symptoms);
    if (assessment.action >= HealthAction::Reset)
      news = history.see(key, life, clock_.now()) || news;
    out.push_back({std::move(symptom), std::move(assessment)});
  }
  if (news) TRY_OK(history.write(store_, node.name));
  // The strongest first, then by name: equal reports give equal facts.
  std::sort(out.begin(), out.end(), [](const AssessedSymptom& a, const AssessedSymptom& b) {
    if (a.assessment.action != b.assessment.action)
      return a.assessment.action > b.assessment.action;
    return std::tie(a.symptom.id, a.symptom.device) < std::tie(b.symptom.id, b.symptom.device);
  });
  return out;
}

Fact HealthPhase::factOf(const inventory::Node& node, const gateway::AgentState& state,
                         std::string_view group, const std::vector<AssessedSymptom>& all) const {
  std::vector<std::string> named;
  auto strongest = HealthAction::Watch;
  nlohmann::json rows = nlohmann::json::array();
  for (const auto& [symptom, assessment] : all) {
    if (groupOf(symptom.id) != group) continue;
    strongest = std::max(strongest, assessment.action);
    if (assessment.action != HealthAction::Watch)
      named.push_back(symptom.device.empty() ? symptom.id : symptom.id + "@" + symptom.device);
    nlohmann::json row = {{"symptom", symptom.id},       {"device", symptom.device},
                          {"count", symptom.count},      {"text", symptom.text},
                          {"advice", assessment.advice}, {"action", toString(assessment.action)}};
    for (const auto& gpu : state.hardware.gpus)
      if (!symptom.device.empty() && gpu.pci.ends_with(symptom.device)) row["serial"] = gpu.serial;
    rows.push_back(std::move(row));
  }
  Fact fact{Subject(node.name),
            facetOf(group),
            std::string(kHealthy),
            clock_.now(),
            lifecycle::agentSource(Subject(node.name)),
            ""};
  if (strongest != HealthAction::Watch) {
    const auto shown = std::min(named.size(), kNamedSymptoms);
    fact.value = fmt::format(
        "{}:{}{}", toString(strongest),
        fmt::join(named.begin(), named.begin() + static_cast<std::ptrdiff_t>(shown), ","),
        named.size() > shown ? fmt::format(",+{}", named.size() - shown) : "");
  }
  if (!rows.empty())
    fact.evidence = canonical({{"boot", state.boot_id}, {"symptoms", std::move(rows)}});
  return fact;
}

Result<std::vector<Fact>> HealthPhase::look(const Subject& subject) {
  std::vector<Fact> facts;
  const auto* node = subject.isCluster() ? nullptr : cluster_.findNode(subject.node());
  if (!node) return facts;
  TRY(held, Quarantine(store_).find(node->name));
  facts.push_back({subject, FacetName(std::string(kQuarantineFacet)),
                   std::string(held ? kQuarantineHeld : kQuarantineNone), clock_.now(),
                   "quarantine list",
                   held ? canonical({{"since", muster::toString(held->since)},
                                     {"by", held->by},
                                     {"reason", held->reason}})
                        : ""});
  const auto state = agents_.state(node->name);
  if (!state) {
    TRY(unheard, liveness_.factWhenSilent(node->name));
    if (unheard) facts.push_back(std::move(*unheard));
    return facts;
  }
  liveness_.heard(node->name);
  if (state->mode != wire::Mode::Disk || !state->health) return facts;
  TRY(history, HealthHistory::read(store_, node->name, clock_.now()));
  TRY(all, assessAll(*node, *state, history));
  for (const auto group : kGroups) {
    facts.push_back(factOf(*node, *state, group, all));
    if (facts.back().value != kHealthy && !isOnlyBlind(symptomsOf(facts.back())))
      TRY_OK(storeKernelLog(agents_, store_, *state, facts.back().value, clock_.now()));
  }
  facts.push_back({subject, FacetName(std::string(kRebootsFacet)),
                   std::to_string(history.reboots()), clock_.now(), "health history", ""});
  return facts;
}

Goal HealthPhase::goalOf(const Subject& subject, const Fact& fact,
                         const inventory::MonitorPolicy& policy, int reboots) const {
  Goal goal;
  goal.facet = {subject, fact.facet};
  goal.want = std::string(kHealthy);
  goal.expected = seconds(1);
  goal.deadline = kNoDeadline;
  goal.why = "a node in a pool must be healthy";
  const auto action = actionWordOf(fact);
  if (action.empty()) return goal;
  goal.why = fmt::format("its agent reports {}", symptomsOf(fact));
  if (!needsReboot(action)) {
    goal.blocked =
        fmt::format("{}; no action of muster repairs that: {}", goal.why,
                    fact.evidence.empty() ? "see the finding" : "the evidence names what to do");
    return goal;
  }
  goal.disruption = Disruption::Reset;
  goal.expected = kRebootExpected;
  goal.deadline = kRebootDeadline;
  if (reboots >= policy.reboots)
    goal.blocked = fmt::format(
        "{}, and {} reboots within {} days did not help; inspect the node: `muster rma {} --out "
        "FILE`",
        goal.why, reboots, kRemembered.count() / 24, subject.str());
  return goal;
}

std::vector<Goal> HealthPhase::goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const FactSet& facts) const {
  std::vector<Goal> out;
  if (subject.isCluster() || !cluster.findNode(subject.node())) return out;
  const auto reboots =
      std::atoi(facts.value(subject, FacetName(std::string(kRebootsFacet))).value_or("0").c_str());
  for (const auto group : kGroups)
    if (const auto* fact = facts.find(subject, facetOf(group));
        fact && !isOnlyBlind(symptomsOf(*fact)))
      out.push_back(goalOf(subject, *fact, cluster.monitor, reboots));
  if (facts.value(subject, FacetName(std::string(kQuarantineFacet))) == kQuarantineHeld) {
    Goal goal;
    goal.facet = {subject, FacetName(std::string(kQuarantineFacet))};
    goal.want = std::string(kQuarantineNone);
    goal.why = "a node in quarantine joins no pool";
    goal.blocked = "only a person lifts a quarantine: " + quarantineRemoveAdvice(subject.node());
    out.push_back(std::move(goal));
  }
  return out;
}

/// The GPUs that a reset alone may heal: all that is wrong asks for no more, and it was not tried
/// in this boot.
std::vector<std::string> HealthPhase::resettable(const Action& action, const FactSet& facts,
                                                 const gateway::AgentState& state,
                                                 const HealthHistory& history) const {
  std::set<std::string> gpus;
  const auto* fact = facts.find(action.facet.subject, action.facet.facet);
  if (!fact || actionWordOf(*fact) != toString(HealthAction::Reset) ||
      fact->facet != facetOf("gpu") || history.knowsGpuReset(state.boot_id))
    return {};
  const auto evidence = jsonOrNone(fact->evidence, kKeptJson);
  const auto rows = evidence.is_object() ? evidence.value("symptoms", nlohmann::json::array())
                                         : nlohmann::json::array();
  for (const auto& row : rows) {
    if (row.value("action", "") != toString(HealthAction::Reset)) continue;
    const auto device = row.value("device", "");
    if (device.empty()) return {};
    gpus.insert(device);
  }
  return {gpus.begin(), gpus.end()};
}

/// The gates' passes are from before the repair: they are forgotten, so that nothing joins on them.
Result<void> HealthPhase::forgetPasses(const Subject& subject, const FactSet& facts) {
  std::vector<FacetName> passes;
  for (const auto& fact : facts.of(subject))
    if (stageOf(fact.facet) == Stage::Gates) passes.push_back(fact.facet);
  return store_.forgetFacts(subject, passes);
}

/// Answers nothing when only a reboot is left. The agent refuses while anything uses the GPUs, and
/// tells of its health anew with the end of the task.
Async<std::optional<Outcome>> HealthPhase::resetGpus(NodeName node, Action action,
                                                     ActContext& context) {
  const auto state = agents_.state(node);
  if (!state)
    co_return fail(ErrorCode::Unavailable,
                   "the agent of " + node.str() + " does not answer, so its GPUs cannot be reset");
  if (kGpuReset.size() + state->boot_id.size() != context.operation().size() ||
      !context.operation().ends_with(state->boot_id))
    co_return std::optional<Outcome>(
        Done{});  // another boot has begun meanwhile: that is more than a reset
  CO_TRY(history, HealthHistory::read(store_, node, clock_.now()));
  const auto gpus = resettable(action, context.facts(), *state, history);
  if (gpus.empty())
    co_return std::optional<Outcome>(
        Done{});  // they were reset before a crash; verify says whether it helped
  context.progress(0.2, fmt::format("resetting {}", fmt::join(gpus, ", ")));
  wire::AgentTask task{context.intentId() + "/gpu-reset", wire::TaskKind::ResetGpu,
                       toJson(wire::ResetGpuParams{gpus}), kResetTask};
  const auto reset = co_await agents_.runTask(node, std::move(task));
  if (!reset && reset.error().canRetry()) co_return fail(reset.error());
  if (!reset) {
    context.progress(0.2, "a reboot is needed: " + reset.error().str());
    co_return std::optional<Outcome>();
  }
  if (history.gpusReset(state->boot_id, clock_.now())) CO_TRY_OK(history.write(store_, node));
  co_return std::optional<Outcome>(Done{});
}

/// A repair. GPUs that a reset heals are reset; all else is a reboot, counted before it is asked
/// for, done when another boot of the installed system has told of its health.
Async<Outcome> HealthPhase::act(Action action, ActContext& context) {
  const auto node = action.facet.subject.node();
  const auto state = agents_.state(node);
  if (context.operation().empty() && state) {
    CO_TRY(history, HealthHistory::read(store_, node, clock_.now()));
    if (!resettable(action, context.facts(), *state, history).empty()) {
      CO_TRY_OK(forgetPasses(action.facet.subject, context.facts()));
      CO_TRY_OK(co_await context.recordOperation(std::string(kGpuReset) + state->boot_id));
    }
  }
  if (context.operation().starts_with(kGpuReset)) {
    CO_TRY(outcome, co_await resetGpus(node, action, context));
    if (outcome) co_return std::move(*outcome);
  }
  co_return co_await reboot(node, action.facet.subject, context);
}

Async<Outcome> HealthPhase::reboot(NodeName node, Subject subject, ActContext& context) {
  const auto state = agents_.state(node);
  if (context.operation().empty() || context.operation().starts_with(kGpuReset)) {
    if (!state)
      co_return fail(
          ErrorCode::Unavailable,
          "the agent of " + node.str() + " does not answer, so it cannot be told to reboot");
    CO_TRY(history, HealthHistory::read(store_, node, clock_.now()));
    if (!history.knowsReboot(context.intentId()) && history.reboots() >= cluster_.monitor->reboots)
      co_return Blocked{
          fmt::format("{} reboots did not help {}; inspect it", history.reboots(), node.str())};
    if (history.rebooted(context.intentId(), clock_.now())) CO_TRY_OK(history.write(store_, node));
    CO_TRY_OK(forgetPasses(subject, context.facts()));
    CO_TRY_OK(co_await context.recordOperation(state->boot_id));
  }
  if (state && state->boot_id == context.operation()) {
    context.progress(0.2, "rebooting");
    co_await restart_notifier_.announce(node, context.intentId(), "reboot for its health");
    wire::AgentTask task{context.intentId(), wire::TaskKind::Reboot, "{}", kRebootTask};
    CO_TRY_OK(co_await agents_.runTask(node, std::move(task)));
    co_return Again{kBootPoll, "the node to go down"};
  }
  if (!state || state->mode != wire::Mode::Disk || !state->health)
    co_return Again{kBootPoll, "the installed system to boot and report its health"};
  co_return Done{};
}

}  // namespace

std::string_view actionWordOf(const Fact& fact) {
  if (!fact.facet.str().starts_with(kHealthPrefix) || fact.value == kHealthy ||
      fact.facet.str() == kRebootsFacet)
    return {};
  return std::string_view(fact.value).substr(0, fact.value.find(':'));
}

std::string symptomsOf(const Fact& fact) {
  const auto colon = fact.value.find(':');
  return colon == std::string::npos ? std::string() : fact.value.substr(colon + 1);
}

std::unique_ptr<Phase> makeHealthPhase(const inventory::Cluster& cluster,
                                       gateway::AgentGateway& agents, Store& store, Clock& clock,
                                       RestartCallback on_restart) {
  return std::make_unique<HealthPhase>(cluster, agents, store, clock, std::move(on_restart));
}

}  // namespace muster::monitor
