// SPDX-License-Identifier: Apache-2.0
// One action of a running plan, from its guards to its closed intent. Internal to lifecycle/.
#pragma once

#include "lifecycle/executor/action_report.h"
#include "lifecycle/executor/wiped_facts.h"

namespace muster::lifecycle {

enum class ActionStatus { Done, Failed, Blocked };
struct ActionResult {
  ActionStatus status = ActionStatus::Done;
  std::string why;
};

class ActionRun final : public ActContext {
 public:
  /// `open`: the intent of an earlier run for this action, to be taken up again. `facts` is shared
  /// by the whole run. `template_intent` says for which plan and request.
  ActionRun(const Services& services, LeaseKeeper& claims, FactSet& facts, Intent template_intent,
            Action action, std::optional<Intent> open);
  ActionRun(const ActionRun&) = delete;

  Task<ActionResult> run();

  // ActContext
  const std::string& intentId() const override { return intent_.id; }
  std::string operation() const override { return intent_.operation; }
  Async<void> recordOperation(std::string id) override;
  bool wipeAllowed() const override;
  void progress(double fraction, std::string_view text) override {
    report_.progress(fraction, text);
  }
  void finding(Finding finding) override { report_.finding(std::move(finding)); }
  const FactSet& facts() const override { return facts_; }

 private:
  struct Observation {
    bool met = false;
    std::string value;  ///< "" when nothing was seen of the facet
  };
  /// How it went; all empty: the facet was seen to be met.
  struct Attempt {
    std::string blocked = {};
    std::optional<Error> error = {};
    std::optional<ActionResult> ended = {};  ///< and written down
  };
  Task<Attempt> execute();
  bool isDrain() const { return action_.id.ends_with(kDrainSuffix); }
  std::string wantNow() const;
  std::optional<std::string> refreshGoal();
  bool disturbs() const;
  Task<std::optional<std::string>> guard();
  Task<std::optional<std::string>> guardPool();
  Async<std::vector<Fact>> askPool(Phase* phase);
  Task<std::optional<std::string>> guardWipe();
  Task<std::optional<ActionResult>> resumeIntent();
  Async<void> begin();
  Task<void> restoreUnwiped();
  Async<void> drive();
  Async<Outcome> actOnce();
  Async<std::vector<Fact>> verifyOnce();
  Async<Observation> observeFacet();
  Async<void> confirm();
  std::chrono::milliseconds timeLeft() const;
  /// What has passed since then was spent waiting for something that is away: it does not count, up
  /// to kLongestAway in all.
  void excludeWaiting(std::chrono::steady_clock::time_point since);
  Error overdue() const;
  Task<ActionResult> done(std::string how);
  Task<ActionResult> failed(Error error);
  Task<ActionResult> keepOpen(Error error);
  Task<ActionResult> blocked(std::string why);
  Task<std::string> close(IntentState state, std::string outcome, bool findings_too = false);

  const Services& services_;
  LeaseKeeper& claims_;
  FactSet& facts_;
  Phase* phase_;
  Action action_;
  std::optional<Intent> open_;
  Intent intent_;
  ActionReport report_;
  WipedFacts wiped_facts_;
  bool journaled_ = false;  ///< intent_ is open in the store
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::duration away_{};  ///< by which started_ was moved
  bool write_failed_ =
      false;  ///< the store refused the last thing that had to be known before going on
  std::optional<std::string> blocked_by_;  ///< the phase answered Blocked
};

}  // namespace muster::lifecycle
