// SPDX-License-Identifier: Apache-2.0
#include "app/runs/run_rows.h"

#include "app/runs/run_change.h"
#include "base/log.h"

namespace muster::app {

using namespace lifecycle;

void RunRows::tell(const std::string& text) const {
  logInfo("run", "{}", text);
  if (notice_) notice_(text);
}

Result<Run> RunRows::move(const std::string& id, RunState to, RunReason reason,
                          const std::string& text, const std::function<void(Run&)>& edit) {
  TRY(moved, changeRun(store_, id, [&](Run run, std::string& note) -> Result<Run> {
        note = fmt::format("run {}: {}{}", id, toString(to), text.empty() ? "" : ": " + text);
        run.text = text.substr(0, kCutRunTextBytes);
        run.worked_on_by = holder_;
        if (edit) edit(run);
        return changed(std::move(run), to, reason, RunMover::Executor, holder_, now());
      }));
  tell(fmt::format("run {} is {}{}", id, toString(to), text.empty() ? "" : ": " + text));
  return std::move(moved);
}

Result<void> RunRows::endWith(const std::string& id, const Error& error) {
  if (error.canRetry()) {
    (void)waitsFor(id, error.str());  // the store may be what is away
    return std::unexpected(error);
  }
  TRY(run, readRun(store_, id));
  if (!mayChange(run.state, RunState::Failed, RunMover::Executor)) return std::unexpected(error);
  TRY_OK(move(id, RunState::Failed, RunReason::CannotPlan, error.str()));
  return {};
}

/// What hinders a run is shown with it, once.
Result<void> RunRows::waitsFor(const std::string& id, const std::string& trouble) {
  const auto text = ("tried again: " + trouble).substr(0, kCutRunTextBytes);
  TRY(run, readRun(store_, id));
  if (run.text == text) return {};
  TRY_OK(changeRun(store_, id, [&](Run row, std::string& note) -> Result<Run> {
    note = fmt::format("run {}: {}", id, text);
    row.text = text;
    return row;
  }));
  return {};
}

Result<void> RunRows::keepPlan(const std::string& id, const Plan& plan) {
  auto json = plan.toJson();
  if (json.size() > kMaxKeptPlanBytes) return {};
  return store_.putPlan(id, {plan.hash(), std::move(json)});
}

}  // namespace muster::app
