// SPDX-License-Identifier: Apache-2.0
#include "cli/view/console_progress.h"

#include "cli/exit_code.h"
#include "cli/view/plan_view.h"

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

void MonitorProgress::onNotice(const std::string& text) {
  finish();
  std::cout << "muster monitor: " << text << std::endl;
}

}  // namespace muster::cli
