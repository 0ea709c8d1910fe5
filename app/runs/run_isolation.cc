// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_isolation.h"

#include "app/runs/run_change.h"
#include "app/runs/run_rounds.h"
#include "app/runs/run_scope.h"
#include "app/site/effective_cluster.h"
#include "app/site/leadership.h"
#include "app/validation/isolation_work.h"
#include "base/io/crypto.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "validate/isolate/isolation.h"

#include <fmt/ranges.h>

#include <charconv>
#include <cmath>
#include <set>

namespace muster::app {

using namespace lifecycle;

namespace {

namespace isolate = validate::isolate;

constexpr std::string_view kLogPrefix = "isolating-";
constexpr std::size_t kSeedDigits = 15;  ///< hexadecimal: below 2^63
constexpr std::chrono::seconds kOtherWorkersPoll{10};
constexpr int kMaxWaitsForOthers = 360;

std::string logOf(const std::string& run) { return std::string(kLogPrefix) + run; }

/// The same for every process that works on the run, so that the rounds are the same.
std::uint64_t seedOf(const Run& run) {
  if (run.isolate.seed > 0) return run.isolate.seed;
  const auto digits = io::sha256Hex(run.id).substr(0, kSeedDigits);
  std::uint64_t out = 1;
  std::from_chars(digits.data(), digits.data() + digits.size(), out, 16);
  return out;
}

/// Those that were named, or all of fabrics.
Result<std::vector<NodeName>> nodesMeant(const RunWork& work, const Run& run) {
  if (!run.apply.nodes.empty()) return selectedNodes(work.cluster, run.apply.nodes);
  return nodesOfFabrics(work.cluster);
}

/// What is said of the run on its way, for who follows it.
void tell(RunWork& work, const std::string& id, const std::string& text) {
  const auto noted = work.store.addEvent({0, work.clock.now(), EventKind::Note, Subject::cluster(),
                                          std::string(kRunEventPrefix) + id, text});
  if (!noted && work.notice) work.notice(text);
}

IsolationServices servicesFor(RunWork& work, const std::string& id) {
  auto out = *work.isolation;
  out.notice = [&work, id](const std::string& text) { tell(work, id, text); };
  return out;
}

/// Of runs that were over when their process died between two steps.
void sweep(RunWork& work) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(work.isolation->folder, error)) {
    const auto name = entry.path().filename().string();
    if (!name.starts_with(kLogPrefix) || !entry.is_directory(error)) continue;
    const auto run = work.runs.read(name.substr(kLogPrefix.size()));
    if (run && *run && isEnd((*run)->state)) (void)forgetIsolation(*work.isolation, name);
  }
}

/// Nodes that have not passed, and that no culprit names.
std::size_t openNodes(const isolate::Verdict& verdict, std::size_t nodes) {
  std::set<int> told(verdict.cleared.begin(), verdict.cleared.end());
  told.insert(verdict.good.begin(), verdict.good.end());
  for (const auto& culprit : verdict.culprits) {
    using enum isolate::CulpritKind;
    if (culprit.kind == Node || culprit.kind == Nic) told.insert(culprit.a);
    if (culprit.kind == Pair) told.insert({culprit.a, culprit.b});
  }
  return nodes - told.size();
}

Result<void> settle(RunWork& work, RunRows& rows, const Run& run,
                    const isolate::IsolationRun& done) {
  const auto& verdict = done.verdict;
  const auto& site = done.begun.site;
  TRY(file, keepIsolation(servicesFor(work, run.id), done));
  std::vector<std::string> lines;
  for (const auto& culprit : verdict.culprits) {
    const auto told = isolate::tell(site, culprit);
    lines.push_back(fmt::format("{}: {}; {}", told.subject, told.what, told.next));
  }
  if (!verdict.unclear.empty())
    lines.push_back(
        fmt::format("{} of {} nodes are neither cleared nor accused; every test is in {}",
                    openNodes(verdict, site.nodes.size()), site.nodes.size(), file.string()));
  const auto proof =
      verdict.culprits.empty() && !verdict.good.empty()
          ? fmt::format(
                "{} good in {} rounds and not cleared (a node that is bad in three of ten "
                "rounds is missed in {:.2g} % of such runs); ",
                verdict.good.size(), verdict.good_rounds,
                100 * isolate::missedWith(verdict.good_rounds))
          : std::string();
  const auto text =
      fmt::format("{} rounds, {} tests of {} nodes: {} bad, {} not decided; {}{}", verdict.rounds,
                  verdict.tests, site.nodes.size(), verdict.culprits.size(), verdict.unclear.size(),
                  proof, file.string());
  const bool is_clear = verdict.culprits.empty() && verdict.unclear.empty();
  TRY_OK(rows.move(run.id, is_clear ? RunState::Done : RunState::Failed,
                   is_clear ? RunReason::None : RunReason::FaultsFound, text, [&](Run& row) {
                     row.progress.done = static_cast<std::size_t>(verdict.tests);
                     row.progress.planned = row.progress.done;
                     row.progress.rounds = static_cast<std::size_t>(verdict.rounds);
                     row.progress.failed = verdict.culprits.size();
                     addProblems(row, lines);
                   }));
  return forgetIsolation(*work.isolation, logOf(run.id));
}

/// While the nodes are held.
Async<void> test(RunWork& work, RunRows& rows, Run run, std::vector<NodeName> nodes) {
  const auto& asked = run.isolate;
  IsolationWish wish;
  wish.request.engine = asked.engine.empty() ? "auto" : asked.engine;
  if (asked.min_gbps > 0) wish.request.min_gbps = asked.min_gbps;
  wish.request.seed = seedOf(run);
  wish.request.until = asked.until;
  wish.nodes = std::move(nodes);
  wish.may_leave_out = run.apply.nodes.empty();
  wish.log = logOf(run.id);
  wish.is_shared = hasSeveralControllers(work.cluster);
  wish.run_id = "isolate-" + run.id;
  auto done = co_await isolateNodes(servicesFor(work, run.id), std::move(wish));
  if (!done) co_return std::unexpected(std::move(done).error());
  co_return settle(work, rows, run, *done);
}

/// One action that disturbs nothing for each node that is to be tested. Errors: Conflict (a named
/// node must not be disturbed), InvalidInput (fewer than two nodes)
Result<Plan> planIsolation(const RunWork& work, const Run& run, const FactSet& facts) {
  TRY(nodes, nodesMeant(work, run));
  Plan plan;
  plan.inventory_digest = work.cluster.digest;
  const FacetName pool{std::string(kPoolFacet)};
  for (const auto& node : nodes) {
    const Subject subject(node);
    std::optional<Fact> place;
    if (const auto* known = facts.find(subject, pool)) place = *known;
    if (const auto why = whyNotDisturb(work.cluster, node, place); !why.empty()) {
      if (run.apply.nodes.empty()) continue;
      return fail(ErrorCode::Conflict, fmt::format("{}: {}; nothing was tested", node.str(), why));
    }
    plan.policy.only.insert(subject);
    plan.facts_used[{subject, pool}] = place ? place->value : "";
    plan.actions.push_back(testOf(node));
  }
  if (plan.actions.size() < 2)
    return fail(ErrorCode::InvalidInput,
                "an isolation tests nodes against each other, and fewer than two may be disturbed "
                "now; nothing was tested");
  plan.facts_digest = digestOf(plan.facts_used);
  return plan;
}

Async<void> isolateForRun(RunWork& work, RunRows& rows, Run run) {
  if (!work.isolation)
    co_return fail(ErrorCode::Internal, "this process cannot test between nodes");
  sweep(work);
  std::vector<NodeName> nodes;
  std::set<Subject> subjects;
  for (const auto& name : namesOf(run.subjects)) {
    nodes.emplace_back(name);
    subjects.insert(Subject(NodeName(name)));
  }
  const Worker worker{"run " + run.id, run.asked_by.principal, run.asked_by.address,
                      run.apply.command.empty() ? "run " + run.id : run.apply.command};
  for (int waits = 0; waits <= kMaxWaitsForOthers; ++waits) {
    auto holding = work.engine.holding(
        subjects, worker, [&work, &rows, run, nodes] { return test(work, rows, run, nodes); });
    auto held = co_await std::move(holding);
    if (held || !held.error().has(HoldRefusal::OthersWork)) co_return held;
    co_await work.clock.sleep(kOtherWorkersPoll);
  }
  CO_TRY_OK(rows.move(run.id, RunState::WorkLeft, RunReason::OthersWork));
  co_return Result<void>();
}

class IsolationRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    const auto& engine = run.isolate.engine;
    if (!engine.empty() && engine != "rdma" && engine != "nccl" && engine != "tcp")
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("there is no engine \"{}\"; there are rdma, nccl and tcp; without any "
                      "it is what the nodes have",
                      printable(engine)));
    if (!isolate::proofOf(run.isolate.until))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("an isolation is run until its nodes are cleared or good, not until "
                              "\"{}\"",
                              printable(run.isolate.until)));
    if (!std::isfinite(run.isolate.min_gbps) || run.isolate.min_gbps < 0)
      return fail(ErrorCode::InvalidInput, "the least rate of a healthy pair is in Gb/s, above 0");
    return {};
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet facts, Policy) const override {
    CO_TRY(plan, planIsolation(work, run, facts));
    co_return RunPlan{std::move(plan)};
  }
  Async<void> carryOut(RunRounds& rounds, Run run, std::optional<Plan>) const override {
    co_return co_await isolateForRun(rounds.work(), rounds.rows(), std::move(run));
  }
  /// What was tested so far is forgotten.
  Result<void> cancel(const RunWork& work, const Run& run) const override {
    return work.isolation ? forgetIsolation(*work.isolation, logOf(run.id)) : Result<void>();
  }
};

}  // namespace

const RunKindRules& isolationRules() {
  static const IsolationRules rules;
  return rules;
}

}  // namespace muster::app
