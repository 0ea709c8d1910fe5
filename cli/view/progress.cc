// SPDX-License-Identifier: Apache-2.0
#include "cli/view/progress.h"

#include "base/json_output.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/view/plan_view.h"

#include <nlohmann/json.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace muster::cli {
namespace {

using lifecycle::Event;
using lifecycle::EventKind;

constexpr int kBarWidth = 20;

std::string bar(double fraction) {
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * kBarWidth);
  return fmt::format("[{:<{}}] {:3.0f}%", std::string(full, '#'), kBarWidth,
                     100 * std::clamp(fraction, 0.0, 1.0));
}

/// Words that only count on say nothing new.
std::string withoutNumbers(std::string text) {
  std::erase_if(text, [](unsigned char c) { return std::isdigit(c); });
  return text;
}

std::string facetOf(const Event& event) {
  const auto slash = event.action_id.find('/');
  return printable(slash == std::string::npos ? event.action_id
                                              : event.action_id.substr(slash + 1));
}

std::size_t terminalColumns() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 100;
}

}  // namespace

std::string toJson(const Event& event) {
  nlohmann::json out{{"sequence", event.sequence},   {"at", toString(event.at)},
                     {"kind", toString(event.kind)}, {"subject", event.subject.str()},
                     {"action", event.action_id},    {"text", event.text}};
  if (event.fraction >= 0) out["fraction"] = event.fraction;
  return jsonText(out);
}

std::string eventLine(const Event& event) {
  const auto time = toString(event.at).substr(11, 8);
  std::string out = fmt::format("{} {:<9} {:<18} {}", time, printable(event.subject.str()),
                                facetOf(event), toString(event.kind));
  if (event.fraction >= 0) out += fmt::format(" {:.0f}%", 100 * event.fraction);
  if (!event.text.empty()) out += ": " + printable(briefDigests(event.text));
  return out;
}

ProgressView::ProgressView(std::ostream& out, Style style) : out_(out), style_(style) {}

ProgressView::Style ProgressView::styleFor(bool json) {
  if (json) return Style::Json;
  return isatty(STDOUT_FILENO) ? Style::Terminal : Style::Lines;
}

void ProgressView::show(const Event& event) {
  if (style_ == Style::Json) {
    out_ << toJson(event) << std::endl;
    return;
  }
  if (event.kind == EventKind::Observed) return;
  if (style_ == Style::Lines) return showLine(event);
  const auto subject = event.subject.str();
  if (subject.empty()) return;
  if (!lines_.contains(subject)) order_.push_back(subject);
  lines_[subject] =
      fmt::format("{:<9} {:<20} {} {}", subject, facetOf(event),
                  event.fraction >= 0 ? bar(event.fraction) : std::string(toString(event.kind)),
                  printable(event.text));
  redraw();
}

void ProgressView::showLine(const Event& event) {
  // A log does not need every percent: progress is shown when its words change or another tenth is
  // reached.
  if (event.kind == EventKind::ActionProgress || event.kind == EventKind::ActionWaiting) {
    const auto mark = fmt::format("{} {} {}", static_cast<int>(event.kind),
                                  event.fraction >= 0 ? static_cast<int>(event.fraction * 10) : -1,
                                  event.fraction >= 0 ? std::string() : withoutNumbers(event.text));
    if (std::exchange(last_progress_[event.action_id], mark) == mark) return;
  }
  out_ << eventLine(event) << std::endl;
}

void ProgressView::redraw() {
  if (drawn_) writeRaw(out_, fmt::format("\x1b[{}A", drawn_));
  const auto columns = terminalColumns();
  for (const auto& subject : order_) {
    writeRaw(out_, "\r\x1b[2K");
    out_ << cutToBytes(lines_[subject], columns - 1) << '\n';
  }
  drawn_ = order_.size();
  out_.flush();
}

void ProgressView::finish() { drawn_ = 0; }

}  // namespace muster::cli
