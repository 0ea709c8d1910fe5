// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_bmc_change.h"

#include "app/nodes/bmc_credentials.h"
#include "app/runs/bmc_changer.h"
#include "app/runs/run_change.h"
#include "app/runs/run_rounds.h"
#include "app/runs/run_scope.h"
#include "app/site/effective_cluster.h"
#include "base/printable.h"
#include "bmc/bulk_operation.h"
#include "inventory/model/cluster.h"

#include <algorithm>

namespace muster::app {

using namespace lifecycle;

namespace {

constexpr std::chrono::seconds kOtherWorkersPoll{10};
constexpr int kMaxWaitsForOthers = 90;  ///< for one node; it takes one of few places meanwhile
constexpr std::chrono::seconds kUsualTime{30}, kLongestTime{600};  ///< of one BMC

struct ChangeWords {
  std::string_view facet, from, to, reason;
  std::string_view what;  ///< in notes, as the command on the host says it
  std::string_view at_the_end;
};

constexpr ChangeWords kPassword{
    "bmc.password",
    "the password",
    "the next password",
    "its credential declares a next password",
    kBmcPasswordChange,
    "when `muster bmc show` reports it for all BMCs of the credential, write the next password "
    "into its password, and remove rotate_to"};
constexpr ChangeWords kCertificate{
    "bmc.certificate",
    "its certificate",
    "a new certificate",
    "somebody has asked for a new certificate",
    kBmcCertificateChange,
    "`muster bmc show` says where the inventory names a certificate that was replaced"};

const ChangeWords& wordsOf(const Run& run) {
  return run.kind == RunKind::BmcPassword ? kPassword : kCertificate;
}

/// Whether the node's BMC has what the run is to bring. Errors: NotFound (no next password is
/// declared), those of the store
Result<bool> hasIt(const RunWork& work, const Run& run, const std::set<std::string>& done,
                   const NodeName& name) {
  if (run.kind == RunKind::BmcCertificate) return done.contains(name.str());
  TRY_OK(requireNextPassword(work.cluster, name));
  TRY(identity, bmcIdentity(work.cluster, work.store, *work.cluster.findNode(name)));
  return identity.memory.rotation == bmc::Rotation::Done;
}

/// An action that disturbs nothing for each BMC that is to be changed.
Result<Plan> planBmcChange(const RunWork& work, const Run& run) {
  TRY(nodes, selectedNodes(work.cluster, run.apply.nodes));
  const auto& words = wordsOf(run);
  const auto done = namesOf(run.bmc_change.done);
  Plan plan;
  plan.inventory_digest = work.cluster.digest;
  for (const auto& node : nodes) {
    plan.policy.only.insert(Subject(node));
    TRY(has_it, hasIt(work, run, done, node));
    if (has_it) continue;
    Action action;
    action.facet = {Subject(node), FacetName(std::string(words.facet))};
    action.id = action.facet.str();
    action.phase = "bmc";
    action.from = std::string(words.from);
    action.to = std::string(words.to);
    action.reason = std::string(words.reason);
    action.expected = kUsualTime;
    action.deadline = kLongestTime;
    plan.actions.push_back(std::move(action));
  }
  plan.facts_digest = digestOf(plan.facts_used);
  return plan;
}

/// What is said of the run on its way, for who follows it.
void tell(RunWork& work, const std::string& id, const std::string& text) {
  const auto noted = work.store.addEvent({0, work.clock.now(), EventKind::Note, Subject::cluster(),
                                          std::string(kRunEventPrefix) + id, text});
  if (!noted && work.notice) work.notice(text);
}

/// Of one BMC: to the node's log, to who follows the run, and to its row.
Result<void> keepEnd(RunWork& work, const Run& run, const NodeName& node,
                     const Result<void>& ended) {
  const auto outcome = ended ? std::string("done") : printable(ended.error().str());
  TRY_OK(
      work.store.addEvent({0, work.clock.now(), EventKind::Note, Subject(node), "",
                           fmt::format("{}@{}: {}: {} (run {})", run.asked_by.principal,
                                       run.asked_by.address, wordsOf(run).what, outcome, run.id)}));
  tell(work, run.id, fmt::format("{}: {}", node.str(), outcome));
  TRY_OK(changeRun(work.runs, run.id, [&](Run row, std::string&) -> Result<Run> {
    if (ended) {
      row.bmc_change.done = with(row.bmc_change.done, {node});
      ++row.progress.done;
    } else {
      ++row.progress.failed;
      addProblems(row, {fmt::format("{}: {}", node.str(), outcome)});
    }
    return row;
  }));
  return {};
}

Async<void> changeHeld(RunWork& work, RunKind kind, NodeName node) {
  CO_TRY(open, work.store.openIntents());
  CO_TRY_OK(requireNoAction(open, node));  // one that nobody works on at the moment
  co_return co_await (kind == RunKind::BmcPassword ? work.bmcs->rotatePassword(node)
                                                   : work.bmcs->issueCertificate(node));
}

/// While nobody else works on the node.
Async<void> changeOne(RunWork& work, Run run, NodeName node) {
  const Worker worker{"run " + run.id, run.asked_by.principal, run.asked_by.address,
                      run.apply.command.empty() ? "run " + run.id : run.apply.command};
  const std::function<Async<void>()> change = [&work, kind = run.kind, node] {
    return changeHeld(work, kind, node);
  };
  const std::set<Subject> subjects{Subject(node)};
  for (int waits = 0;; ++waits) {
    auto held = co_await work.engine.holding(subjects, worker, change);
    if (held || !held.error().has(HoldRefusal::OthersWork) || waits >= kMaxWaitsForOthers)
      co_return held;
    co_await work.clock.sleep(kOtherWorkersPoll);
  }
}

Result<void> settle(RunRows& rows, const Run& run, const bmc::BulkOperationReport& report) {
  TRY(row, rows.read(run.id));  // over all its lives
  auto text = fmt::format("{} of {} done", row.progress.done, row.progress.planned);
  if (report.failed.empty()) {
    TRY_OK(rows.move(run.id, RunState::Done, RunReason::None,
                     text + "; " + std::string(wordsOf(run).at_the_end)));
    return {};
  }
  text += fmt::format(
      ", {} failed, {} not begun; asked for again it goes on with those that have "
      "it not",
      report.failed.size(), report.not_started.size());
  TRY_OK(rows.move(run.id, RunState::Failed, RunReason::ActionFailed, text));
  return {};
}

Async<void> changeForRun(RunWork& work, RunRows& rows, Run run) {
  if (!work.bmcs)
    co_return fail(ErrorCode::Internal, "this process cannot change BMCs; nothing was done");
  if (run.inventory_digest != work.cluster.digest) {
    CO_TRY_OK(rows.move(run.id, RunState::Outdated, RunReason::InventoryChanged,
                        "the inventory has changed while it ran; ask for it again: it goes on with "
                        "those that have it not"));
    co_return Result<void>();
  }
  CO_TRY(plan, planBmcChange(work, run));
  CO_TRY_OK(changeRun(work.runs, run.id, [&plan](Run row, std::string&) -> Result<Run> {
    ++row.progress.rounds;
    row.progress.failed = 0;  // each is tried again
    row.progress.planned = row.progress.done + plan.actions.size();
    return row;
  }));
  std::vector<NodeName> nodes;
  for (const auto& action : plan.actions) nodes.push_back(action.facet.subject.node());
  const std::function<Async<void>(NodeName)> change = [&work, run](NodeName node) {
    return changeOne(work, run, std::move(node));
  };
  const std::function<void(const NodeName&, const Result<void>&)> ended =
      [&work, &run](const NodeName& node, const Result<void>& result) {
        const auto kept = keepEnd(work, run, node, result);
        if (!kept && work.notice) work.notice(kept.error().str());
      };
  auto report = co_await bmc::runBulkOperation(nodes, change, ended);
  if (!report) co_return std::unexpected(std::move(report).error());
  co_return settle(rows, run, *report);
}

class BmcChangeRules final : public RunKindRules {
 public:
  Result<void> accept(Run& run) const override {
    if (!run.apply.nodes.empty()) return {};
    return fail(ErrorCode::InvalidInput,
                "a change of BMCs names their nodes, by a hostlist; nothing was done");
  }
  Run asAsked(Run run) const override {
    run.bmc_change = {};  // what is done is no wish
    return run;
  }
  bool isAboutNodes() const override { return false; }
  Result<Policy> policy(const RunWork& work, const Run& run) const override {
    TRY(nodes, selectedNodes(work.cluster, run.apply.nodes));
    Policy named;
    named.only.insert(nodes.begin(), nodes.end());
    return named;
  }
  Async<RunPlan> plan(RunWork& work, Run run, FactSet, Policy) const override {
    CO_TRY(plan, planBmcChange(work, run));
    co_return RunPlan{std::move(plan)};
  }
  /// What others have begun on these nodes is theirs.
  std::optional<std::string> nothingLeft(const Run& run, const Plan& plan,
                                         const std::set<std::string>&) const override {
    return plan.empty() && !run.begun ? std::optional<std::string>("they have it already")
                                      : std::nullopt;
  }
  Async<void> carryOut(RunRounds& rounds, Run run, std::optional<Plan>) const override {
    co_return co_await changeForRun(rounds.work(), rounds.rows(), std::move(run));
  }
};

}  // namespace

const RunKindRules& bmcPasswordRules() {
  static const BmcChangeRules rules;
  return rules;
}

const RunKindRules& bmcCertificateRules() {
  static const BmcChangeRules rules;
  return rules;
}

}  // namespace muster::app
