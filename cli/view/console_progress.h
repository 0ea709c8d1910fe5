// SPDX-License-Identifier: Apache-2.0
// ConsoleProgress: what a use case says while it works, on the operator's terminal.
#pragma once

#include "app/monitor_run.h"
#include "app/progress_listener.h"
#include "cli/view/progress.h"

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

 private:
  const bool json_;
  const ShowEvents events_;
  ProgressView view_;
};

/// The monitor's lines are its answer: they go to standard output.
class MonitorProgress final : public ConsoleProgress {
 public:
  explicit MonitorProgress(bool json) : ConsoleProgress(json, ShowEvents::Yes) {}
  void onNotice(const std::string& text) override;
};

}  // namespace muster::cli
