// SPDX-License-Identifier: Apache-2.0
#include "cli/view/console_progress.h"

#include "cli/exit_code.h"
#include "cli/view/plan_view.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace muster::cli {

ConsoleProgress::ConsoleProgress(bool json, ShowEvents events)
    : json_(json), events_(events), view_(std::cout, ProgressView::styleFor(json)) {}

void ConsoleProgress::onEvent(const lifecycle::Event& event) {
  if (events_ == ShowEvents::Yes) view_.show(event);
}

void ConsoleProgress::onPlan(const lifecycle::Plan& plan) {
  if (!json_) std::cout << planText(plan) << std::endl;
}

void ConsoleProgress::onSlowness(double slowness) {
  if (!json_) std::cout << slownessText(slowness) << std::flush;
}

void ConsoleProgress::onReport(const lifecycle::ApplyReport& report) {
  view_.finish();
  if (!json_) std::cout << reportText(report);
}

void ConsoleProgress::onNotice(const std::string& text) {
  view_.finish();
  std::cerr << text << std::endl;
}

void ConsoleProgress::onError(const Error& error) {
  view_.finish();
  report(error);
}

void ApplyProgress::onEvent(const lifecycle::Event& event) {
  const std::lock_guard lock(mutex_);
  if (!asking_) ConsoleProgress::onEvent(event);
}

void ApplyProgress::onImpact(const lifecycle::Plan& plan, const app::PlanImpact& impact) {
  finish();
  if (!json_) std::cout << impactText(impact) << planText(plan, detail_) << std::endl;
}

bool ApplyProgress::mayApply(const app::PlanImpact& impact) {
  if (yes_ || json_ || ::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) return true;
  const auto isAgreed = [](const std::vector<NodeName>& nodes, const std::set<NodeName>& agreed) {
    return std::ranges::all_of(nodes, [&](const auto& node) { return agreed.contains(node); });
  };
  if (asked_ && isAgreed(impact.taken_out, agreed_out_) && isAgreed(impact.wiped, agreed_wipes_) &&
      isAgreed(impact.reset, agreed_resets_))
    return true;
  {
    const std::lock_guard lock(mutex_);
    asking_ = true;
    std::cout << "Carry this plan out? [y/N] " << std::flush;
  }
  std::string answer;
  const bool is_said = static_cast<bool>(std::getline(std::cin, answer));
  const std::lock_guard lock(mutex_);
  asking_ = false;
  if (!is_said || (answer != "y" && answer != "yes")) return false;
  asked_ = true;
  agreed_out_.insert(impact.taken_out.begin(), impact.taken_out.end());
  agreed_wipes_.insert(impact.wiped.begin(), impact.wiped.end());
  agreed_resets_.insert(impact.reset.begin(), impact.reset.end());
  return true;
}

void MonitorProgress::onNotice(const std::string& text) {
  finish();
  std::cout << "muster monitor: " << text << std::endl;
}

}  // namespace muster::cli
