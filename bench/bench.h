// SPDX-License-Identifier: Apache-2.0
// The bench harness: one executable an area, one JSON line a figure.
//
// A bench measures, then records. Lines go to the file named by MUSTER_BENCH_OUT (appended), else
// to standard output.
// `./run bench [area]` builds and runs them, merges the lines into build/bench.json and prints a
// table.
#pragma once

#include "base/io/process.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

namespace muster::bench {

enum class Bar { AtMost, AtLeast };

/// One figure. `bar` is what was promised, `versus` what a peer or the physical floor reached in
/// this same run.
struct Figure {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> bar;
  Bar direction = Bar::AtMost;
  std::optional<double> versus;

  bool holds() const { return !bar || (direction == Bar::AtMost ? value <= *bar : value >= *bar); }
};

/// Collects the figures of an area. `main` returns exitCode(): 1 when a bar does not hold.
class Report {
 public:
  explicit Report(std::string_view area) : area_(area) {}

  void record(const Figure& figure) {
    auto orNull = [](const std::optional<double>& number) {
      return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(nullptr);
    };
    nlohmann::ordered_json line = {{"area", area_},
                                   {"name", figure.name},
                                   {"value", figure.value},
                                   {"unit", figure.unit},
                                   {"bar", orNull(figure.bar)},
                                   {"holds", figure.holds()},
                                   {"versus", orNull(figure.versus)}};
    holds_ = holds_ && figure.holds();
    if (const char* path = std::getenv("MUSTER_BENCH_OUT"))
      std::ofstream(path, std::ios::app) << line.dump() << '\n';
    else
      fmt::print("{}\n", line.dump());
  }

  int exitCode() const { return holds_ ? 0 : 1; }

 private:
  std::string area_;
  bool holds_ = true;
};

/// Seconds that the fastest of some runs took: the least disturbed one says most about the code.
template <class Work>
double fastestSeconds(int runs, Work work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < runs; ++i) {
    auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

/// What a measurement cannot go on without.
template <class T>
T need(Result<T> result) {
  if (!result) {
    fmt::print(stderr, "bench: {}\n", result.error().str());
    std::exit(2);
  }
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

/// A shell script that must succeed.
inline void sh(const std::string& script) {
  io::Command command{.program = "sh", .args = {"-ec", script}};
  command.timeout = std::chrono::minutes(15);
  (void)need(io::runChecked(command));
}

}  // namespace muster::bench
