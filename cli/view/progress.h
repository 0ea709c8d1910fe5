// SPDX-License-Identifier: Apache-2.0
// What happens, as it happens: a live block of bounded size on a terminal, plain lines elsewhere,
// JSON on request.
#pragma once

#include "lifecycle/store/store.h"

#include <chrono>
#include <functional>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace muster::cli {

std::string toJson(const lifecycle::Event& event);
std::string eventLine(const lifecycle::Event& event);

/// The terminal as it is now.
struct Screen {
  std::size_t rows = 24, columns = 100;
  bool colours = false;
};
/// Of standard output. No colours where NO_COLOR is set (no-color.org) or TERM is dumb.
Screen terminalScreen();

class ProgressView {
 public:
  enum class Style { Terminal, Lines, Json };
  using Now = std::function<std::chrono::steady_clock::time_point()>;
  ProgressView(std::ostream& out, Style style, std::function<Screen()> screen = terminalScreen,
               Now now = std::chrono::steady_clock::now);
  /// Terminal for a tty, Lines otherwise, Json when asked for.
  static Style styleFor(bool json);

  void show(const lifecycle::Event& event);
  /// Draws what is due and leaves the live block; later output starts on a fresh line.
  void finish();

 private:
  enum class Where { Failed, Running, Waiting, Idle };  ///< in the order of the screen
  struct Row {
    std::string subject, text;
    Where where = Where::Idle;
  };
  struct Line {
    std::string text;
    Where where = Where::Idle;
    friend bool operator==(const Line&, const Line&) = default;
  };

  static Where whereOf(lifecycle::EventKind kind);
  bool mayDraw();
  std::vector<Line> block(const Screen& screen) const;
  void redraw();
  void showLine(const lifecycle::Event& event);

  std::ostream& out_;
  Style style_;
  std::function<Screen()> screen_;
  Now now_;
  std::vector<Row> rows_;  ///< in the order in which subjects were heard of
  std::map<std::string, std::size_t> row_of_;
  std::map<std::string, std::string> last_progress_;
  std::vector<Line> drawn_;  ///< what stands on the screen
  double draws_left_;        ///< of a few in a row, refilled by the time
  std::chrono::steady_clock::time_point refilled_;
  bool is_due_ = false;
};

}  // namespace muster::cli
