// SPDX-License-Identifier: Apache-2.0
// The fleet's report: 10,000 nodes × 200 measurements, from the store's file to HTML, JSON and
// JUnit. MUSTER_BENCH_KEEP names a folder for them.
#include "base/io/files.h"
#include "bench/bench.h"
#include "lifecycle/store/store.h"
#include "tests/validate/fleet_history.h"
#include "validate/report/report.h"

#include <filesystem>

namespace {

using namespace muster;
using Steady = std::chrono::steady_clock;

double since(Steady::time_point begin) {
  return std::chrono::duration<double>(Steady::now() - begin).count();
}

}  // namespace

int main() {
  bench::Report figures("report");
  const auto folder =
      std::filesystem::temp_directory_path() / ("muster-report-" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  const std::string url = "sqlite:" + (folder / "muster.db").string();
  test::FleetHistory fleet;
  fleet.nodes = 10'000, fleet.metrics = 40, fleet.runs = 5;
  fleet.fault = [](int node, int metric, int run) {
    if (node % 1'997 == 3 && metric % 7 == 0) return 0.92;
    if (node / 16 == 211 && metric == 5) return 0.98;
    return node == 4'242 && metric == 9 && run >= 3 ? 0.96 : 1.0;
  };
  const auto sets = fleet.make(1);
  int code = 1;
  {
    const auto store = lifecycle::openStore(url);
    auto kept = lifecycle::openMeasurements(url);
    auto begin = Steady::now();
    if (!store || !kept || !(*kept)->add(sets)) return 1;
    figures.record({.name = "storing 50,000 runs of 40 numbers in one commit",
                    .value = since(begin),
                    .unit = "s"});
    begin = Steady::now();
    const auto read = (*kept)->since(fleet.from);
    const double reading_s = since(begin);
    if (!read || read->size() != sets.size()) return 1;
    begin = Steady::now();
    const auto statistics = validate::history::analyse(*read, {});
    const double analysing_s = since(begin);
    const validate::report::Subject subject{"bench", fleet.from + std::chrono::hours(24 * 40),
                                            std::nullopt};
    begin = Steady::now();
    const auto html = toHtml(statistics, subject), json = toJson(statistics, subject),
               junit = toJunit(statistics, subject);
    const double writing_s = since(begin);
    figures.record({.name = fmt::format("report of 10,000 nodes × 200 measurements: read {:.2f} s, "
                                        "analysed {:.2f} s, HTML + JSON + JUnit {:.2f} s",
                                        reading_s, analysing_s, writing_s),
                    .value = reading_s + analysing_s + writing_s,
                    .unit = "s",
                    .bar = 5});
    figures.record({.name = fmt::format("size of the HTML; {} alarms, 38 things were put in",
                                        statistics.alarms.size()),
                    .value = static_cast<double>(html.size()) / 1e6,
                    .unit = "MB"});
    if (const char* keep = std::getenv("MUSTER_BENCH_KEEP"))
      (void)io::writeFileAtomic(std::filesystem::path(keep) / "report.html", html);
    code = figures.exitCode();
  }
  std::filesystem::remove_all(folder);
  return code;
}
