// SPDX-License-Identifier: Apache-2.0
#include "validate/pair_test.h"

#include "base/json_output.h"
#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"
#include "inventory/model/fabric_membership.h"
#include "inventory/model/profile.h"
#include "validate/checks/expectations.h"
#include "validate/checks/rdma_devices.h"
#include "validate/gates.h"
#include "validate/history/statistics.h"
#include "wire/task_params.h"

#include <algorithm>
#include <cmath>

namespace muster::validate {
namespace {

using lifecycle::Again;
using std::chrono::seconds;
using wire::CheckResult;
using wire::CheckStatus;

constexpr seconds kPairLimit{45};     ///< one attempt
constexpr seconds kLongestPair{900};  ///< … where the nodes are slow (base/limits.h)
constexpr seconds kLoad{2};           ///< of each rail, at the least rate that passes
constexpr std::size_t kPartners = 2;  ///< that a node must fail against before it has failed
constexpr int kUnmeasured =
    8;  ///< tests that ended without a number before that counts against a node
constexpr int kMaxPoolStateReads =
    4;  ///< in one call of act; the next call looks at the same ones again, nearest first
constexpr seconds kLookAgain{5};
constexpr int kPort = 18515;               ///< the latency's is the next one
constexpr int kLatencyIterations = 5'000;  ///< microseconds each
constexpr std::string_view kLatencyValue = "rdma_latency_us";

bool isWorse(const std::string& metric, double value, double than) {
  if (std::isnan(than)) return false;
  return history::betterOf(metric) == history::Better::Lower ? !(value <= than) : !(value >= than);
}

/// One result for all: it passes when every rail has passed; its values are those of the worst.
CheckResult ofAllRails(const std::vector<std::string>& devices, std::vector<CheckResult> rails) {
  CheckResult all = rails.front();
  if (rails.size() == 1) return all;
  all.text.clear(), all.values.clear();
  nlohmann::json evidence = nlohmann::json::object();
  for (std::size_t rail = 0; rail < rails.size(); ++rail) {
    const auto& each = rails[rail];
    const bool worse = all.status == CheckStatus::Pass ||
                       (each.status == CheckStatus::Fail && all.status != CheckStatus::Fail);
    if (each.status != CheckStatus::Pass && worse) all.status = each.status;
    all.text += fmt::format("{}{}: {}", all.text.empty() ? "" : "; ", devices[rail], each.text);
    for (const auto& [key, value] : each.values) {
      all.values[devices[rail] + "." + key] = value;
      const auto [known, first] = all.values.emplace(key, value);
      if (!first && isWorse(key, value, known->second)) known->second = value;
    }
    evidence[devices[rail]] = each.evidence;
    if (rail > 0) all.seconds += each.seconds;
  }
  all.evidence = jsonText(evidence);
  return all;
}

}  // namespace

CheckResult PairTests::broken(std::string text) const {
  CheckResult result;
  result.id = std::string(check());
  result.status = CheckStatus::Error;
  result.text = std::move(text);
  return result;
}

bool PairTests::Trial::tried(const NodeName& node) const {
  return std::any_of(failed.begin(), failed.end(),
                     [&](const auto& each) { return each.first == node; });
}

Async<PairTests::Answer> PairTests::run(inventory::Node node, FacetName gate, Limits limits,
                                        lifecycle::ActContext& context) {
  if (paired_.contains(node.name))
    co_return Answer(Again{seconds(1), "the end of the pair test with another node"});
  auto& trial = trials_[context.intentId()];
  CO_TRY(choice, co_await choose(node, trial, context));
  if (!choice.partner) {
    if (trial.failed.empty())
      co_return Answer(Again{choice.one_is_soon ? seconds(1) : kLookAgain, choice.why_not});
    if (choice.one_is_soon)
      co_return Answer(
          Again{seconds(1), "another partner, to confirm that this node is the cause"});
    co_return Answer(verdict(trial, "no other partner could confirm it: " + choice.why_not));
  }
  const auto partner = *choice.partner;
  PairHold hold(paired_, node.name, partner.node);
  context.progress(0.5, "RDMA write against " + partner.node.str());
  CO_TRY(result,
         co_await measure(node, partner, limits,
                          fmt::format("{}/{}{}", context.intentId(),
                                      memory_ == PairMemory::Gpu ? "gdr/" : "", ++trial.attempts)));
  if (result.status == CheckStatus::Pass) {
    warnOf(trial, node, gate, partner, context);
    co_return Answer(std::move(result));
  }
  // perftest gives no number when it cannot calibrate its clock, as on a machine that is busy
  // elsewhere: that says nothing of the link.
  if (result.status == CheckStatus::NoData && ++trial.unmeasured < kUnmeasured)
    co_return Answer(Again{
        seconds(trial.unmeasured),
        fmt::format("the repeated test with {}: the first gave no number", partner.node.str())});
  trial.failed.emplace_back(partner.node, std::move(result));
  if (trial.failed.size() >= kPartners) co_return Answer(verdict(trial, ""));
  co_return Answer(Again{
      seconds(1), fmt::format("another partner: the test failed against {}", partner.node.str())});
}

/// The best partner that may be disturbed at this moment. Nobody is held yet, but nothing is
/// awaited after the last look.
Async<PairTests::Choice> PairTests::choose(inventory::Node node, Trial trial,
                                           lifecycle::ActContext& context) {
  Choice choice;
  choice.why_not = "a partner with a working RDMA device";
  int looks = 0;
  for (const auto& partner : partnersOf(cluster_, node, agents_, context.facts())) {
    if (trial.tried(partner.node)) continue;
    std::string why;
    if (partner.pooled) {
      if (++looks > kMaxPoolStateReads) break;
      CO_TRY(answer, co_await whyNot(partner));
      why = answer;
    }
    if (paired_.contains(partner.node)) {
      choice.one_is_soon = true;
      why = fmt::format("{} is in another test", partner.node.str());
    }
    if (why.empty()) {
      choice.partner = partner;
      break;
    }
    choice.why_not = "a partner: " + why;
  }
  if (paired_.contains(node.name))
    choice = {std::nullopt, "the end of the pair test with another node", true};
  co_return choice;
}

/// The pool is asked now: a fact from the beginning of the run may be hours old, and a job may have
/// started since.
Async<std::string> PairTests::whyNot(Partner partner) {
  std::optional<lifecycle::Fact> pool;
  if (pool_state_) {
    auto seen = co_await pool_state_(lifecycle::Subject(partner.node));
    for (const auto& fact : seen.value_or(std::vector<lifecycle::Fact>{}))
      if (fact.facet.str() == lifecycle::kPoolFacet) pool = fact;
  }
  co_return whyNotDisturb(partner.node, pool);
}

/// Every device of the node, one after the other, against the partner's of the same rail: side by
/// side they would share the host's memory.
Async<CheckResult> PairTests::measure(inventory::Node node, Partner partner, Limits limits,
                                      std::string task_id) {
  const auto& profile = cluster_.profileOf(node);
  // GPUs speak over the compute fabric alone.
  auto fabrics = memory_ == PairMemory::Gpu ? std::vector<std::string>{profile.fabric}
                                            : inventory::fabricsOf(profile);
  if (fabrics.empty()) fabrics.emplace_back();
  std::vector<Rail> all;
  for (const auto& fabric : fabrics) {
    auto rails = railsOn(node, partner, fabric);
    if (!rails) co_return broken(rails.error().text());
    for (auto& rail : *rails) all.push_back(std::move(rail));
  }
  std::vector<std::string> own;
  std::vector<CheckResult> results;
  for (const auto& rail : all) {
    // What a gate demands, it demands of the compute fabric.
    const auto asked = rail.fabric == profile.fabric ? limits : Limits{};
    CO_TRY(result, co_await measureRail(node, partner, rail, asked,
                                        all.size() == 1 ? task_id : task_id + "/" + rail.own));
    results.push_back(std::move(result));
    own.push_back(rail.own);
  }
  co_return ofAllRails(own, std::move(results));
}

Result<std::vector<PairTests::Rail>> PairTests::railsOn(const inventory::Node& node,
                                                        const Partner& partner,
                                                        const std::string& fabric) const {
  const auto& profile = cluster_.profileOf(node);
  const auto where = profile.other_fabrics.empty() ? "" : " on the fabric " + fabric;
  const auto own = railDevicesOf(cluster_, node, agents_, fabric);
  if (own.empty())
    return fail(ErrorCode::Unavailable,
                fmt::format("{} reports no RDMA device{} any more", node.name.str(), where));
  auto theirs = partner.devices;
  if (fabric != profile.fabric)
    if (const auto* other = cluster_.findNode(partner.node))
      theirs = railDevicesOf(cluster_, *other, agents_, fabric);
  if (theirs.empty())
    return fail(ErrorCode::Unavailable,
                fmt::format("{} reports no RDMA device{}", partner.node.str(), where));
  std::vector<Rail> out;
  for (std::size_t rail = 0; rail < own.size(); ++rail)
    out.push_back({own[rail], theirs[rail % theirs.size()], rail, own.size(), fabric});
  return out;
}

/// GPUs lie by rails as they are numbered; CUDA is told to number them as the bus does.
std::optional<std::string> PairTests::addGpu(wire::RdmaPairParams& params, const NodeName& node,
                                             const Rail& rail) const {
  if (memory_ == PairMemory::Host) return std::nullopt;
  const auto state = agents_.state(node);
  const auto gpus = state ? state->hardware.gpus.size() : 0;
  if (gpus == 0) return fmt::format("{} reports no GPU with usable memory", node.str());
  params.gpu = static_cast<int>(rail.number * gpus / rail.count);
  return std::nullopt;
}

/// Soft-RoCE's is the processor's. Of GPU memory nobody has published a ceiling.
void PairTests::addLatency(wire::RdmaPairParams& params, const Rail& rail,
                           const Limits& limits) const {
  if (isSoftRdma(rail.own) && !limits.max_latency_us) return;
  params.latency_iterations = kLatencyIterations;
  const auto known = memory_ == PairMemory::Host ? rdmaCeilingUs(rail.own) : std::nullopt;
  params.max_us = limits.max_latency_us.value_or(known.value_or(0));
}

double PairTests::floorOf(const inventory::Node& node, const Rail& rail) const {
  const auto fabric = cluster_.fabrics.find(rail.fabric);
  const double host = rdmaFloorGbits(
      rail.own, pairLink(fabric == cluster_.fabrics.end() ? nullptr : &fabric->second));
  if (memory_ == PairMemory::Host) return host;
  const auto state = agents_.state(node.name);
  if (state && !state->hardware.gpus.empty())
    if (const auto* sku = Skus::builtIn().find(state->hardware.gpus.front().model))
      if (const auto row = sku->expect.find("gdr_min_gbits_per_s"); row != sku->expect.end())
        return std::min(host, row->second.value);  // the table's is for its fastest link
  return host;
}

Async<CheckResult> PairTests::measureRail(inventory::Node node, Partner partner, Rail rail,
                                          Limits limits, std::string task_id) {
  const double floor = limits.min_gbits.value_or(floorOf(node, rail));
  wire::RdmaPairParams server;
  server.port = kPort;
  server.limit = limitHere(clock_, kPairLimit, kLongestPair);
  server.iterations = rdmaIterations(floor, kLoad);
  addLatency(server, rail, limits);
  auto client = server;
  server.device = rail.partner;
  client.role = wire::PairRole::Client;
  client.device = rail.own;
  client.peer = partner.address;
  client.min_gbits = floor;
  for (const auto& why : {addGpu(server, partner.node, rail), addGpu(client, node.name, rail)})
    if (why) co_return broken(*why);
  const auto served = agents_.submit(
      partner.node, {task_id + "/server", wire::TaskKind::RdmaPair, toJson(server), kPairLimit});
  if (!served)
    co_return broken(
        fmt::format("{} did not take part: {}", partner.node.str(), served.error().str()));
  CO_TRY(report, co_await agents_.runTask(node.name, {task_id + "/client", wire::TaskKind::RdmaPair,
                                                      toJson(client), kPairLimit}));
  CO_TRY(results, wire::parseCheckResults(report.result));
  if (results.size() != 1)
    co_return fail(ErrorCode::Corrupt, "the agent's answer is not one check result");
  auto& result = results.front();
  result.id = std::string(check());
  // What an agent does not know it leaves out, and passes.
  if (client.latency_iterations > 0 && result.status == CheckStatus::Pass &&
      !result.values.contains(std::string(kLatencyValue))) {
    result.status = CheckStatus::Error;  // no other try gives it
    result.text += ", but its latency was not measured: update the agent";
  }
  co_return result;
}

/// The node failed: the last result stands for all, with the words of each.
CheckResult PairTests::verdict(const Trial& trial, const std::string& note) const {
  CheckResult result = trial.failed.back().second;
  result.text.clear();
  for (const auto& [partner, each] : trial.failed)
    result.text +=
        fmt::format("{}with {}: {}", result.text.empty() ? "" : "; ", partner.str(), each.text);
  if (!note.empty()) result.text += "; " + note;
  return result;
}

/// The node is good, so whoever it failed with before is not, or the way between them. One that has
/// its gate still to run speaks for itself; one that has passed long ago (in its pool) is named
/// here.
void PairTests::warnOf(const Trial& trial, const inventory::Node& node, const FacetName& gate,
                       const Partner& good, lifecycle::ActContext& context) const {
  for (const auto& [suspect, result] : trial.failed) {
    const lifecycle::Subject subject(suspect);
    const auto passed = context.facts().value(subject, gate);
    if (!passed || !passed->starts_with("pass:")) continue;
    lifecycle::Finding finding;
    finding.facet = {subject, gate};
    finding.severity = Severity::Warning;
    finding.text = fmt::format("the RDMA test of {} failed with {} and passed with {}: {}",
                               node.name.str(), suspect.str(), good.node.str(), result.text);
    finding.evidence = result.evidence;
    finding.what_to_do = fmt::format(
        "drain {} and run its gate again; check its cable, port and RDMA driver", suspect.str());
    context.finding(std::move(finding));
  }
}

}  // namespace muster::validate
