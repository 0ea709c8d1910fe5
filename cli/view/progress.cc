// SPDX-License-Identifier: Apache-2.0
#include "cli/view/progress.h"

#include "base/json_output.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "cli/view/common_text.h"

#include <nlohmann/json.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace muster::cli {
namespace {

using lifecycle::Event;
using lifecycle::EventKind;

constexpr int kBarWidth = 20;
constexpr double kDrawsInARow = 4, kDrawsPerSecond = 4;
constexpr std::size_t kLeastRows = 4;    ///< besides subjects: counts, the rest's line, the prompt
constexpr std::size_t kSecondsEnd = 19;  ///< of 2026-11-25T19:20:05.123Z

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

}  // namespace

std::string toJson(const Event& event) {
  nlohmann::json out{{"sequence", event.sequence},   {"at", toString(event.at)},
                     {"kind", toString(event.kind)}, {"subject", event.subject.str()},
                     {"action", event.action_id},    {"text", event.text}};
  if (event.fraction >= 0) out["fraction"] = event.fraction;
  return jsonText(out);
}

std::string eventLine(const Event& event) {
  const auto time = toString(event.at).substr(0, kSecondsEnd) + "Z";
  std::string out = fmt::format("{} {:<9} {:<18} {}", time, printable(event.subject.str()),
                                facetOf(event), toString(event.kind));
  if (event.fraction >= 0) out += fmt::format(" {:.0f}%", 100 * event.fraction);
  if (!event.text.empty()) out += ": " + printable(briefDigests(event.text));
  return out;
}

Screen terminalScreen() {
  Screen out;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
    if (size.ws_col > 0) out.columns = size.ws_col;
    if (size.ws_row > 0) out.rows = size.ws_row;
  }
  const char *no_color = std::getenv("NO_COLOR"), *term = std::getenv("TERM");
  out.colours = (!no_color || !*no_color) && term && std::string_view(term) != "dumb";
  return out;
}

ProgressView::ProgressView(std::ostream& out, Style style, std::function<Screen()> screen, Now now)
    : out_(out),
      style_(style),
      screen_(std::move(screen)),
      now_(std::move(now)),
      draws_left_(kDrawsInARow),
      refilled_(now_()) {}

ProgressView::Style ProgressView::styleFor(bool json) {
  if (json) return Style::Json;
  return isatty(STDOUT_FILENO) ? Style::Terminal : Style::Lines;
}

void ProgressView::show(const Event& event) {
  if (style_ == Style::Json) {
    out_ << cli::toJson(event) << std::endl;
    return;
  }
  if (event.kind == EventKind::Observed) return;
  if (style_ == Style::Lines) return showLine(event);
  const auto subject = event.subject.str();
  if (subject.empty()) return;
  const auto [row, is_new] = row_of_.try_emplace(subject, rows_.size());
  if (is_new) rows_.push_back({subject, {}, Where::Idle});
  rows_[row->second] = {
      subject,
      fmt::format("{:<9} {:<20} {} {}", printable(subject), facetOf(event),
                  event.fraction >= 0 ? bar(event.fraction) : std::string(toString(event.kind)),
                  printable(event.text)),
      whereOf(event.kind)};
  is_due_ = true;
  if (mayDraw()) redraw();
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

ProgressView::Where ProgressView::whereOf(EventKind kind) {
  switch (kind) {
    case EventKind::ActionStarted:
    case EventKind::ActionProgress:
      return Where::Running;
    case EventKind::ActionWaiting:
      return Where::Waiting;
    case EventKind::ActionFailed:
    case EventKind::ActionBlocked:
      return Where::Failed;
    default:
      return Where::Idle;
  }
}

/// A fleet has thousands of events a second; nobody reads more than a few screens.
bool ProgressView::mayDraw() {
  const auto now = now_();
  draws_left_ = std::min(
      kDrawsInARow,
      draws_left_ + kDrawsPerSecond * std::chrono::duration<double>(now - refilled_).count());
  refilled_ = now;
  if (draws_left_ < 1) return false;
  draws_left_ -= 1;
  return true;
}

/// The counts, then as many subjects as fit: failed, running, waiting, the others.
std::vector<ProgressView::Line> ProgressView::block(const Screen& screen) const {
  std::array<std::size_t, 4> counts{};
  for (const auto& row : rows_) ++counts[static_cast<std::size_t>(row.where)];
  const auto cut = [&screen](const std::string& text) {
    return std::string(cutToBytes(text, std::max<std::size_t>(screen.columns, 2) - 1));
  };
  std::vector<Line> out{
      {cut(fmt::format("{} subjects: {} failed or blocked, {} running, {} waiting, "
                       "{} between two actions",
                       rows_.size(), counts[0], counts[1], counts[2], counts[3])),
       Where::Idle}};
  const std::size_t room = std::max<std::size_t>(screen.rows, kLeastRows) - kLeastRows + 1;
  const bool fits = rows_.size() <= room;
  for (std::size_t where = 0; where < counts.size(); ++where)
    for (const auto& row : rows_)
      if (static_cast<std::size_t>(row.where) == where && (fits || out.size() < room))
        out.push_back({cut(row.text), row.where});
  if (!fits)
    out.push_back({cut(fmt::format("… and {} more", rows_.size() + 1 - out.size())), Where::Idle});
  return out;
}

void ProgressView::redraw() {
  const auto screen = screen_();
  auto now = block(screen);
  if (!drawn_.empty()) writeRaw(out_, fmt::format("\r\x1b[{}A", drawn_.size()));
  for (std::size_t i = 0; i < now.size(); ++i) {
    const bool is_same = i < drawn_.size() && drawn_[i] == now[i];
    if (!is_same) {
      const bool is_red = screen.colours && now[i].where == Where::Failed;
      writeRaw(out_, is_red ? "\r\x1b[2K\x1b[31m" : "\r\x1b[2K");
      out_ << now[i].text;
      if (is_red) writeRaw(out_, "\x1b[0m");
    }
    out_ << '\n';
  }
  if (now.size() < drawn_.size()) writeRaw(out_, "\x1b[J");
  drawn_ = std::move(now);
  is_due_ = false;
  out_.flush();
}

void ProgressView::finish() {
  if (is_due_) redraw();
  drawn_.clear();
}

}  // namespace muster::cli
