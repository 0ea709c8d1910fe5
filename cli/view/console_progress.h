// SPDX-License-Identifier: Apache-2.0
// ConsoleProgress: what a use case says while it works, on the operator's terminal.
#pragma once

#include "app/controller/monitor_run.h"
#include "app/plans/progress_listener.h"
#include "cli/view/plan_view.h"
#include "cli/view/progress.h"

#include <mutex>
#include <set>

namespace muster::cli {

enum class ShowEvents { No, Yes };

class ConsoleProgress : public app::MonitorListener {
 public:
  /// `json`: plans and reports are not printed; events, when they are shown, are JSON lines.
  ConsoleProgress(bool json, ShowEvents events);

  void onEvent(const lifecycle::Event& event) override;
  void onPlan(const lifecycle::Plan& plan) override;
  void onSlowness(double slowness) override;
  void onReport(const lifecycle::ApplyReport& report) override;
  /// To standard error: standard output belongs to the command's answer.
  void onNotice(const std::string& text) override;
  void onError(const Error& error) override;
  /// Ends the live block of a terminal; later output starts on a fresh line.
  void finish() { view_.finish(); }

 protected:
  const bool json_;

 private:
  const ShowEvents events_;
  ProgressView view_;
};

/// Of apply: shows what a plan does to the site, and asks on a terminal before it is carried out.
class ApplyProgress final : public ConsoleProgress {
 public:
  ApplyProgress(bool json, bool yes, PlanDetail detail)
      : ConsoleProgress(json, ShowEvents::Yes), yes_(yes), detail_(detail) {}
  void onEvent(const lifecycle::Event& event) override;
  void onImpact(const lifecycle::Plan& plan, const app::PlanImpact& impact) override;
  /// Asks once, and again where a later round does more than was agreed to. Where standard input
  /// or output is no terminal nobody is asked.
  bool mayApply(const app::PlanImpact& impact) override;

 private:
  const bool yes_;
  const PlanDetail detail_;
  std::mutex mutex_;     ///< the question stands on a thread of its own
  bool asking_ = false;  ///< what happens meanwhile is in the log, not in the operator's answer
  bool asked_ = false;
  std::set<NodeName> agreed_out_, agreed_wipes_, agreed_resets_;
};

/// The monitor's lines are its answer: they go to standard output.
class MonitorProgress final : public ConsoleProgress {
 public:
  explicit MonitorProgress(bool json) : ConsoleProgress(json, ShowEvents::Yes) {}
  void onNotice(const std::string& text) override;
};

}  // namespace muster::cli
