// SPDX-License-Identifier: Apache-2.0
// What happens, as it happens: one line a node with a bar on a terminal, plain lines elsewhere,
// JSON on request.
#pragma once

#include "lifecycle/store/store.h"

#include <chrono>
#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace muster::cli {

std::string toJson(const lifecycle::Event& event);
std::string eventLine(const lifecycle::Event& event);

class ProgressView {
 public:
  enum class Style { Terminal, Lines, Json };
  ProgressView(std::ostream& out, Style style);
  /// Terminal for a tty, Lines otherwise, Json when asked for.
  static Style styleFor(bool json);

  void show(const lifecycle::Event& event);
  /// Leaves the live block; later output starts on a fresh line.
  void finish();

 private:
  void redraw();
  void showLine(const lifecycle::Event& event);

  std::ostream& out_;
  Style style_;
  std::vector<std::string> order_;
  std::map<std::string, std::string> lines_;
  std::map<std::string, std::string> last_progress_;
  std::size_t drawn_ = 0;
};

}  // namespace muster::cli
