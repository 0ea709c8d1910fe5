// SPDX-License-Identifier: Apache-2.0
// The validate phase: gates run checks through agents, a passed set of gates earns a certificate.
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "inventory/model/certificates.h"
#include "inventory/model/cluster.h"
#include "inventory/model/gates.h"
#include "inventory/model/profile.h"
#include "validate/checks/checks.h"
#include "validate/gate_params.h"
#include "validate/gates.h"
#include "validate/pair_test.h"
#include "validate/part_binding.h"
#include "validate/peer_baseline.h"
#include "validate/power_budget.h"
#include "validate/synchronized_load.h"
#include "validate/validate.h"
#include "validate/validation_scope.h"
#include "wire/task_params.h"

#include <algorithm>
#include <array>
#include <set>

namespace muster::validate {
namespace {

using namespace lifecycle;
using std::chrono::seconds;
using wire::AgentTask;
using wire::CheckResult;
using wire::CheckStatus;

constexpr std::string_view kGatePrefix = "gate.";
constexpr std::string_view kCertificate = "certificate";
constexpr std::string_view kPass =
    "pass:";  ///< these four begin a gate's fact; the scope hash follows
constexpr std::string_view kFail = "fail:";
constexpr std::string_view kPartsChanged = "parts-changed:";  ///< it did pass, with other parts
constexpr std::string_view kExpired =
    "expired:";  ///< it did pass, longer ago than a certificate lives
/// What must be right before a gate means anything.
constexpr std::array kBeforeGates{Stage::Firmware,       Stage::Boot,    Stage::Drivers,
                                  Stage::InBandFirmware, Stage::Storage, Stage::Fabric};
constexpr seconds kBootLimit{
    600};  ///< a gate waits so long for a machine that has just been restarted
constexpr std::chrono::milliseconds kLookAgain{2'000};
constexpr std::chrono::milliseconds kSignerAway{15'000};  ///< until it is asked again

std::string gateOf(const FacetName& facet) { return facet.str().substr(kGatePrefix.size()); }
bool isGate(const FacetName& facet) { return facet.str().starts_with(kGatePrefix); }

wire::RunChecksParams toTask(const std::vector<CheckRequest>& requests) {
  wire::RunChecksParams params;
  for (const auto& request : requests)
    params.checks.push_back({request.id, jsonOrNone(request.params, kKeptJson), request.deadline});
  return params;
}

class ValidatePhase final : public Phase {
 public:
  ValidatePhase(const inventory::Cluster& cluster, gateway::AgentGateway& agents,
                CertificateStore& certificates, Store& store, Clock& clock,
                PoolStateReader pool_state, GateSink record, PeerBaselines baselines,
                SynchronizedLoad* synchronized_load, BmcView bmc)
      : cluster_(cluster),
        agents_(agents),
        certificates_(certificates),
        store_(store),
        clock_(clock),
        pairs_(cluster, agents, clock, pool_state, PairMemory::Host, paired_),
        gdr_pairs_(cluster, agents, clock, std::move(pool_state), PairMemory::Gpu, paired_),
        record_(std::move(record)),
        peer_baselines_(std::move(baselines)),
        power_(cluster),
        bmc_(store, clock, std::move(bmc)),
        synchronized_load_(synchronized_load) {}

  std::string_view name() const override { return "validate"; }

  std::vector<Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                          const FactSet& facts) const override {
    if (subject.isCluster()) return {};
    const auto* node = cluster.findNode(subject.node());
    if (!node) return {};
    const auto& profile = cluster.profileOf(*node);
    const auto scope_hash = validationScopeHash(cluster, *node, facts);
    std::vector<Goal> goals;
    std::vector<FacetRef> passed;
    // A person's word stands for the gates until it expires.
    const bool overridden =
        isOverridden(facts.find(subject, FacetName(std::string(kCertificate))), scope_hash);
    for (const auto& name : overridden ? std::vector<std::string>() : profile.gates) {
      const auto& gate = cluster.gates.at(name);
      const FacetRef facet{subject, FacetName(std::string(kGatePrefix) + name)};
      goals.push_back({facet,
                       std::string(kPass) + scope_hash,
                       Disruption::Drain,
                       gateExpected(gate),
                       gateDeadline(gate) * (1 + power_.turns(node->rack)) + kBootLimit,
                       {},
                       fmt::format("profile {} asks for gate {}; {}", profile.name, name,
                                   whyAgain(facts.find(subject, facet.facet))),
                       {},
                       std::vector<Stage>(kBeforeGates.begin(), kBeforeGates.end())});
      passed.push_back(facet);
    }
    std::vector<Stage> after{Stage::Storage};  // a gate passed earlier says nothing about what is
                                               // mounted now
    if (passed.empty()) after.assign(kBeforeGates.begin(), kBeforeGates.end());
    goals.push_back({{subject, FacetName(std::string(kCertificate))},
                     "valid:" + scope_hash,
                     Disruption::None,
                     {},
                     {},
                     passed,
                     "a node needs a certificate for its present state before it runs a job",
                     {},
                     std::move(after)});
    return goals;
  }

  /// A pass ages here, not in the plan: what is older than a certificate's life becomes the fact
  /// `expired:…`, so that the plan stays a function of facts. A valid certificate is younger than
  /// that, and so is all that it rests on.
  Async<std::vector<Fact>> observe(Subject subject) override {
    std::vector<Fact> facts;
    if (subject.isCluster()) co_return facts;
    facts.push_back(certificateFact(subject));
    if (facts.front().value.starts_with("valid:")) co_return facts;
    CO_TRY(known, store_.factsOf(subject));
    for (const auto& fact : known)
      if (isGate(fact.facet))
        if (auto now = ofOtherParts(aged(fact), known); now.value != fact.value)
          facts.push_back(std::move(now));
    co_return facts;
  }

  Async<Outcome> act(Action action, ActContext& context) override {
    const auto* node = cluster_.findNode(action.facet.subject.node());
    if (!node) co_return Outcome(Blocked{"the node is not in the inventory"});
    if (!isGate(action.facet.facet)) co_return certify(*node, context);
    gates_.erase(action.facet);  // what an earlier action has seen says nothing of this one
    auto outcome =
        co_await runGate(*node, cluster_.gates.at(gateOf(action.facet.facet)), action, context);
    if (synchronized_load_ && !outcome && !outcome.error().canRetry())
      synchronized_load_->leave(*node);
    co_return std::move(outcome);
  }

  Async<std::vector<Fact>> verify(Action action) override {
    std::vector<Fact> facts;
    if (isGate(action.facet.facet)) {
      if (const auto done = gates_.find(action.facet); done != gates_.end())
        facts.push_back(aged(done->second));
      if (const auto parts = parts_.find(action.facet); !facts.empty() && parts != parts_.end())
        facts.push_back(parts->second);
    } else {
      facts.push_back(certificateFact(action.facet.subject));
    }
    co_return facts;
  }

 private:
  /// Too old, or from before the node's certificate was revoked. Revocations that cannot be read
  /// let nothing pass.
  bool isOver(const Fact& fact) const {
    if (!fact.value.starts_with(kPass)) return false;
    if (fact.observed_at + cluster_.certificates->lifetime <= clock_.now()) return true;
    const auto revoked = certificates_.revokedAt(fact.subject.node());
    return !revoked || (*revoked && fact.observed_at <= **revoked);
  }

  /// The same pass, its time kept, under the word that is true now.
  Fact aged(Fact fact) const {
    if (isOver(fact)) fact.value.replace(0, kPass.size(), kExpired);
    return fact;
  }

  /// What was written down of the parts when the gate passed; empty: nothing.
  static std::string partsOfGate(const std::string& gate, const std::vector<Fact>& known) {
    const auto facet = std::string(kGatePartsPrefix) + gate;
    const auto found = std::find_if(known.begin(), known.end(),
                                    [&](const Fact& each) { return each.facet.str() == facet; });
    return found == known.end() ? std::string() : found->value;
  }

  /// The same, when parts were changed since and the policy lets this gate be run again for them.
  /// A pass from before parts were written down holds until it ends by itself.
  Fact ofOtherParts(Fact fact, const std::vector<Fact>& known) const {
    const auto* node = cluster_.findNode(fact.subject.node());
    if (!node || !fact.value.starts_with(kPass)) return fact;
    const auto gate = gateOf(fact.facet);
    if (!changedPartsFor(cluster_, *node, gate, partsOfGate(gate, known), known).empty())
      fact.value.replace(0, kPass.size(), kPartsChanged);
    return fact;
  }

  static bool isOverridden(const Fact* certificate, const std::string& scope_hash) {
    if (!certificate || certificate->value != "valid:" + scope_hash) return false;
    const auto evidence = jsonOrNone(certificate->evidence, kKeptJson);
    return evidence.is_object() && evidence.contains("override");
  }

  static std::string whyAgain(const Fact* known) {
    if (known && known->value.starts_with(kExpired))
      return fmt::format(
          "its pass of {} is older than the lifetime of a certificate, or was revoked",
          toString(known->observed_at));
    if (known && known->value.starts_with(kPartsChanged))
      return fmt::format("parts of the node were changed since its pass of {}",
                         toString(known->observed_at));
    return "no pass is known for this hardware, image, firmware and drivers";
  }

  Fact certificateFact(const Subject& subject) const {
    Fact fact{
        subject, FacetName(std::string(kCertificate)), "none", clock_.now(), "certificate store",
        ""};
    const auto certificate = certificates_.find(subject.node());
    if (!certificate) {
      fact.value = "unreadable";
      fact.evidence = jsonText(nlohmann::json{{"error", certificate.error().str()}});
    } else if (*certificate) {
      const auto valid = certificates_.verify(**certificate);
      fact.value = (valid ? "valid:" : "void:") + (*certificate)->scope_hash;
      nlohmann::json evidence{{"expires_at", toString((*certificate)->expires_at)},
                              {"void_because", valid ? "" : valid.error().str()}};
      if ((*certificate)->isOverride())
        evidence["override"] = {{"by", (*certificate)->override_by},
                                {"reason", (*certificate)->override_reason}};
      if (!valid && certificates_.isVoidByDeclaration(**certificate))
        evidence["void_by"] = "declaration";  // read by `muster monitor`
      fact.evidence = jsonText(evidence);
    }
    return fact;
  }

  /// A certificate that rests on peers instead of a table says so.
  static std::string peerBaselineText(const std::string& evidence) {
    const auto results = wire::parseCheckResults(evidence);
    for (const auto& result : results.value_or(std::vector<CheckResult>()))
      if (result.id == kPeerBaselineCheck) return result.text;
    return {};
  }

  /// What other nodes of its kind say: of rates that no table has a floor for that is all there is
  /// to evaluate them by.
  std::vector<CheckResult> peerResults(const inventory::Node& node,
                                       const std::vector<CheckResult>& results) const {
    std::vector<CheckResult> out;
    const auto state = agents_.state(node.name);
    if (!state || state->hardware.gpus.empty()) return out;
    const auto& model = state->hardware.gpus.front().model;
    const auto numbers = numbersOf(results);
    if (!hasRatesForPeers(model, numbers) && !hasBits(numbers)) return out;
    const auto baselines = peer_baselines_
                               ? peer_baselines_(skuOf(cluster_, node, agents_), node.name)
                               : std::map<std::string, Baseline>();
    if (auto rates = evaluateByPeers(model, numbers, baselines)) out.push_back(std::move(*rates));
    if (auto bits = evaluateBits(numbers, baselines)) out.push_back(std::move(*bits));
    return out;
  }

  Result<Outcome> certify(const inventory::Node& node, ActContext& context) {
    Certificate certificate;
    certificate.node = node.name;
    certificate.scope_hash = validationScopeHash(cluster_, node, context.facts());
    certificate.bound = boundFacts(*cluster_.certificates, node.name, context.facts());
    certificate.inventory_digest = declarationDigest(cluster_, node);
    certificate.proven_at = clock_.now();
    for (const auto& gate :
         cluster_.profileOf(node).gates) {  // once more at the last door: no pass, no certificate
      const auto* passed =
          context.facts().find(Subject(node.name), FacetName(std::string(kGatePrefix) + gate));
      if (!passed || passed->value != std::string(kPass) + certificate.scope_hash)
        return Outcome(
            Blocked{fmt::format("gate {} has not passed for the present state of the node", gate)});
      if (isOver(*passed))
        return Outcome(Blocked{fmt::format(
            "the pass of gate {} at {} is older than the lifetime of a certificate; plan again",
            gate, toString(passed->observed_at))});
      const auto known = context.facts().of(Subject(node.name));
      const auto parts = partsOfGate(gate, known);
      if (const auto changed = changedPartsFor(cluster_, node, gate, parts, known);
          !changed.empty())
        return Outcome(
            Blocked{fmt::format("parts ({}) were changed since gate {} passed; plan "
                                "again",
                                fmt::join(changed, ", "), gate)});
      // Bound to what no gate ran with, it would be signed again after a change without one.
      std::erase_if(certificate.bound, [&parts](const auto& bound) {
        return bound.first.starts_with(kPartPrefix) &&
               !sawKind(parts, std::string_view(bound.first).substr(kPartPrefix.size()));
      });
      certificate.proven_at = std::min(certificate.proven_at, passed->observed_at);
      if (auto words = peerBaselineText(passed->evidence); !words.empty())
        certificate.peer_baseline[gate] = std::move(words);
    }
    const auto issued = certificates_.issue(std::move(certificate));
    if (!issued && (issued.error().has(signer::SignerProblem::Away) ||
                    issued.error().has(signer::SignerProblem::Busy)))
      return Outcome(Again{kSignerAway, issued.error().str()});
    if (!issued) return fail(issued.error());
    return Outcome(Done{});
  }

  Async<Outcome> runGate(const inventory::Node& node, inventory::Gate gate, Action action,
                         ActContext& context) {
    // Firmware that was activated by a power cycle has just taken the system away; POST takes
    // minutes.
    const auto agent = agents_.state(node.name);
    if (!agent || agent->mode != wire::Mode::Disk)
      co_return Outcome(
          Again{kLookAgain,
                fmt::format("the agent of the installed system of {} to report", node.name.str())});
    CO_TRY(checks, localChecks(cluster_, cluster_.profileOf(node), gate, slownessOf(clock_)));
    std::vector<CheckResult> results;
    std::vector<std::string> expected;
    for (const auto& check : checks) expected.push_back(check.id);
    if (wantsBmc(gate)) {
      CO_TRY(wait, co_await bmc_.begin(node.name, gate.name, context.intentId()));
      if (wait) co_return Outcome(std::move(*wait));
    }
    if (!checks.empty() && !local_.contains(context.intentId())) {
      CO_TRY(wait, waitForPower(node, gate.name, context));
      if (wait) co_return Outcome(std::move(*wait));
    }
    if (!checks.empty()) {
      CO_TRY(local, co_await localResults(node, gate, checks, context));
      results = std::move(local);
    }
    std::vector<PairTests*> tests;
    if (wantsRdmaPair(gate)) tests.push_back(&pairs_);
    if (wantsGdrPair(gate)) tests.push_back(&gdr_pairs_);
    for (auto* test : tests) {
      expected.emplace_back(test->check());
      auto& done = paired_results_[context.intentId()];
      if (const auto known = done.find(test->check()); known != done.end()) {
        results.push_back(known->second);
        continue;
      }
      CO_TRY(pair, co_await test->run(node, action.facet.facet,
                                      {ownNumber(gate, test->check(), "min_gbits"),
                                       ownNumber(gate, test->check(), "max_latency_us")},
                                      context));
      if (auto* wait = std::get_if<Again>(&pair)) co_return Outcome(*wait);
      results.push_back(std::get<CheckResult>(pair));
      paired_results_[context.intentId()].emplace(
          test->check(), results.back());  // it is not measured again while the other waits
    }
    if (wantsBmc(gate)) {
      CO_TRY(seen, co_await bmc_.end(node, gate, context.intentId()));
      if (seen.wait) co_return Outcome(std::move(*seen.wait));
      for (auto& result : seen.results) results.push_back(std::move(result));
      expected.emplace_back(kBmcLogCheck), expected.emplace_back(kBmcPowerCheck);
      warnOf(seen.warnings, action, context);
    }
    co_return conclude(node, gate, action, std::move(results), expected, context);
  }

  void warnOf(const std::vector<bmc::EventLogCursor::Kept>& warnings, const Action& action,
              ActContext& context) {
    for (const auto& entry : warnings)
      context.finding(
          {action.facet, Severity::Warning,
           fmt::format("the BMC logged during the gate: {}", entry.message),
           jsonText(nlohmann::json{
               {"created", entry.created}, {"severity", entry.severity}, {"log", entry.log}}),
           entry.resolution.empty() ? std::string(adviceFor(kBmcLogCheck)) : entry.resolution,
           clock_.now()});
  }

  /// Load begins when its rack has the power. What the agent knows already runs (or ran) before a
  /// restart of ours, and counts.
  Result<std::optional<Again>> waitForPower(const inventory::Node& node, const std::string& gate,
                                            ActContext& context) {
    const bool synchronized = synchronized_load_ && synchronized_load_->isRequested(node);
    if (const auto known = agents_.report(node.name, context.intentId())) {
      if (synchronized) synchronized_load_->started(node, gate);
      if (!wire::isFinished(known->phase)) power_.takeRunning(node);
      return std::optional<Again>();
    }
    if (synchronized) {
      TRY(wait, synchronized_load_->ready(node, gate, power_, clock_.steady()));
      return wait ? std::optional(Again{wait->after, wait->why}) : std::nullopt;
    }
    const auto why = power_.take(node, clock_.steady());
    return why ? std::optional(Again{kLookAgain, *why}) : std::nullopt;
  }

  /// The node-local checks run once an intent, however often act is called while it waits for a
  /// partner.
  Async<std::vector<CheckResult>> localResults(const inventory::Node& node, inventory::Gate gate,
                                               std::vector<CheckRequest> checks,
                                               ActContext& context) {
    if (const auto known = local_.find(context.intentId()); known != local_.end())
      co_return known->second;
    const PowerHold hold(power_, node.name);
    CO_TRY(results, co_await runLocal(node, gate, checks, context));
    local_[context.intentId()] = results;
    co_return std::move(results);
  }

  Async<std::vector<CheckResult>> runLocal(const inventory::Node& node, inventory::Gate gate,
                                           std::vector<CheckRequest> checks, ActContext& context) {
    context.progress(0, fmt::format("{} checks", checks.size()));
    AgentTask task{context.intentId(), wire::TaskKind::RunChecks, toJson(toTask(checks)),
                   gateDeadline(gate)};
    CO_TRY(report, co_await agents_.runTask(node.name, std::move(task)));
    co_return wire::parseCheckResults(report.result);
  }

  /// What keeps the answers from being exactly one for each check that was asked for; empty: they
  /// are.
  static std::vector<std::string> mismatches(const std::vector<std::string>& expected,
                                             const std::vector<CheckResult>& results) {
    if (expected.empty()) return {"the gate has no checks: it proves nothing"};
    std::map<std::string, int> asked, answered;
    for (const auto& id : expected) ++asked[id];
    for (const auto& result : results) ++answered[result.id];
    std::vector<std::string> wrong;
    for (const auto& [id, count] : asked)
      if (answered[id] < count) wrong.push_back(fmt::format("{} gave no answer", id));
    for (const auto& [id, count] : answered) {
      if (!asked.contains(id))
        wrong.push_back(fmt::format("{} answered, but was not requested", id));
      else if (count > asked[id])
        wrong.push_back(fmt::format("{} answered {} times", id, count));
    }
    return wrong;
  }

  /// Fail closed: every check that was asked for must have answered, once, and must have passed.
  Result<Outcome> conclude(const inventory::Node& node, const inventory::Gate& gate,
                           const Action& action, std::vector<CheckResult> results,
                           const std::vector<std::string>& expected, ActContext& context) {
    auto wrong_answers = mismatches(expected, results);
    for (auto& compared : peerResults(node, results)) results.push_back(std::move(compared));
    std::vector<std::string> failures;
    for (const auto& result : results) {
      if (result.status == CheckStatus::Pass) continue;
      failures.push_back(
          fmt::format("{} {}: {}", result.id, wire::toString(result.status), result.text));
      std::string advice(adviceFor(result.id, result.status));
      if (gate.isolate && (result.id == kPairCheck || result.id == kGdrCheck))
        advice += "; which node, NIC, cable or switch it is: muster validate isolate";
      context.finding({action.facet, Severity::Error, failures.back(), result.evidence,
                       std::move(advice), clock_.now()});
    }
    for (auto& wrong : wrong_answers) {
      context.finding({action.facet, Severity::Error, wrong, wire::toJson(results),
                       "update the agent on the node; then run the gate again", clock_.now()});
      failures.push_back(std::move(wrong));
    }
    local_.erase(context.intentId());
    pairs_.forget(context.intentId()), gdr_pairs_.forget(context.intentId());
    paired_results_.erase(context.intentId());
    bmc_.forget(context.intentId());
    if (record_)
      record_({{clock_.now(), node.name, action.facet.facet.str(), skuOf(cluster_, node, agents_),
                node.rack, numbersOf(results)},
               wire::toJson(results),
               failures});
    const auto scope_hash = validationScopeHash(cluster_, node, context.facts());
    gates_[action.facet] = {action.facet.subject,
                            action.facet.facet,
                            std::string(failures.empty() ? kPass : kFail) + scope_hash,
                            clock_.now(),
                            "agent " + node.name.str(),
                            wire::toJson(results)};
    parts_[action.facet] = {action.facet.subject,
                            FacetName(std::string(kGatePartsPrefix) + gate.name),
                            partsAtGate(context.facts().of(action.facet.subject)),
                            clock_.now(),
                            "agent " + node.name.str(),
                            ""};
    if (!failures.empty())
      return fail(Error(ErrorCode::Conflict,
                        fmt::format("gate {} failed: {}", gate.name, fmt::join(failures, "; ")))
                      .retryable(false));
    return Outcome(Done{});
  }

  const inventory::Cluster& cluster_;
  gateway::AgentGateway& agents_;
  CertificateStore& certificates_;
  Store& store_;
  Clock& clock_;
  std::map<FacetRef, Fact> gates_;  ///< results of this process, until the engine has stored them
  std::map<FacetRef, Fact> parts_;  ///< the parts that each was run with
  std::map<std::string, std::vector<CheckResult>> local_;  ///< by intent
  std::map<std::string, std::map<std::string_view, CheckResult>>
      paired_results_;  ///< by intent and check
  PairTests::Busy paired_;
  PairTests pairs_, gdr_pairs_;
  GateSink record_;
  PeerBaselines peer_baselines_;
  PowerBudget power_;
  BmcGate bmc_;
  SynchronizedLoad* synchronized_load_;  ///< nullptr: nobody can ask for one
};

}  // namespace

std::string skuOf(const inventory::Cluster& cluster, const inventory::Node& node,
                  const gateway::AgentGateway& agents) {
  const auto& profile = cluster.profileOf(node);
  const auto state = agents.state(node.name);
  const auto model = state && !state->hardware.gpus.empty() ? state->hardware.gpus.front().model
                                                            : profile.expect.gpu_model;
  return model.empty() ? profile.name : fmt::format("{}, {}", profile.name, model);
}

namespace {

/// "gpu3" of "gpu3.sm_mhz", "mlx5_2" of "mlx5_2.rdma_write_gbits", "numa1"; empty: the value is the
/// whole node's.
std::string_view deviceIn(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789", kOfNamespaces = "0123456789n";  // nvme0n1
  for (const std::string_view kind :
       {"gpu", "numa", "rank", "nvme", "mlx5_", "bnxt_re", "irdma", "rxe"}) {
    const auto dot =
        name.starts_with(kind)
            ? name.find_first_not_of(kind == "nvme" ? kOfNamespaces : kDigits, kind.size())
            : std::string_view::npos;
    if (dot != std::string_view::npos && dot > kind.size() && name[dot] == '.')
      return name.substr(0, dot);
  }
  return {};
}

}  // namespace

std::map<std::string, double> numbersOf(const std::vector<CheckResult>& results) {
  std::map<std::string, double> numbers;
  for (const auto& result : results)
    for (const auto& [name, value] : result.values) {
      const auto device = deviceIn(name);
      numbers[device.empty() ? result.id + "/" + name
                             : fmt::format("{}/{}@{}", result.id, name.substr(device.size() + 1),
                                           device)] = value;
    }
  return numbers;
}

std::unique_ptr<Phase> makeValidatePhase(const inventory::Cluster& cluster,
                                         gateway::AgentGateway& agents,
                                         CertificateStore& certificates, Store& store, Clock& clock,
                                         PoolStateReader pool_state, GateSink record,
                                         PeerBaselines baselines,
                                         SynchronizedLoad* synchronized_load, BmcView bmc) {
  return std::make_unique<ValidatePhase>(cluster, agents, certificates, store, clock,
                                         std::move(pool_state), std::move(record),
                                         std::move(baselines), synchronized_load, std::move(bmc));
}

}  // namespace muster::validate
