// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/validate.h"
#include "cli/arguments/arguments.h"
#include "cli/arguments/renamed.h"

#include <fmt/format.h>

#include <cmath>

namespace muster::cli {
namespace {

constexpr int kMaxMinutes = 7 * 24 * 60;
constexpr int kMaxDays = 3650;
constexpr double kMaxSeed = 1ull << 53;  ///< what JSON carries whole
constexpr const char* kDirect =
    "Do it in this process, although a monitor serves the site: the monitor waits meanwhile";

/// In Gb/s; CLI11's own would name the largest number that there is.
const CLI::Validator kRate(
    [](std::string& text) {
      double rate = 0;
      if (CLI::detail::lexical_cast(text, rate) && std::isfinite(rate) && rate > 0)
        return std::string();
      return fmt::format(
          "{} is no rate: write Gb/s above 0, or leave it out: then it is the floor "
          "of device and link",
          text);
    },
    "POSITIVE");

void addRun(CLI::App& group, Invocation& call) {
  auto [run, args] = addCommand(
      group, "run",
      "Run gates again, within the power limits of their racks; the same command continues after "
      "an interruption",
      call, validateRun);
  run.add_option("--nodes", args.nodes, "Hostlist")->required();
  run.add_option("--gates", args.gates, "Only these; default: all of the nodes' profiles")
      ->delimiter(',');
  run.add_option("--minutes", args.minutes,
                 "End after this time with status 1; the same command continues, also what nodes "
                 "had begun")
      ->check(CLI::Range(1, kMaxMinutes));
  run.add_flag("--dry-run", args.dry_run, "Show what would be done; start nothing");
  run.add_flag("--synchronized-load", args.synchronized_load,
               "Start a gate on all nodes of a rack at the same time, to test whether the rack's "
               "power supplies bear the load step; refused where its declared power does not "
               "allow it");
  refuseOldFlag(run, "--together", "--synchronized-load");
  run.add_flag("--direct", call.options.direct, kDirect);
  asksServer(run, call);
}

void addIsolate(CLI::App& group, Invocation& call) {
  auto [isolate, args] =
      addCommand(group, "isolate",
                 "Find the node, NIC, switch or pair that is bad, by tests between nodes; exit 1 "
                 "when something is bad",
                 call, validateIsolate);
  isolate.add_option("--nodes", args.nodes, "Hostlist; default: all nodes that may be disturbed");
  isolate
      .add_option("--min-gbps", args.min_gbps,
                  "Minimum of a healthy pair in Gb/s; default: the floor of its device and link")
      ->check(kRate);
  refuseOldOption(isolate, "--least-gbits", "--min-gbps");
  isolate
      .add_option("--engine", args.engine,
                  "What tests nodes: rdma (pairs by perftest), nccl or tcp (collectives); auto: "
                  "nccl where all nodes have it, else rdma")
      ->check(CLI::IsMember({"auto", "rdma", "nccl", "tcp"}))
      ->capture_default_str();
  isolate
      .add_option("--until", args.until,
                  "cleared: 39 rounds, after which a fault that comes and goes is excluded; good: "
                  "16 rounds, which miss one in 0.33 % of the runs and clear nobody; default: "
                  "cleared")
      ->check(CLI::IsMember({"cleared", "good"}));
  isolate.add_option("--seed", args.seed, "Plan the same rounds again")
      ->check(CLI::Range(1.0, kMaxSeed).description("1 to 2^53"));
  isolate.add_flag("--direct", call.options.direct, kDirect);
  asksServer(isolate, call);
}

void addDays(CLI::App& command, app::MeasurementsRequest& request) {
  command.add_option("--days", request.days, "How much of the history counts")
      ->check(CLI::Range(1, kMaxDays))
      ->capture_default_str();
}

}  // namespace

void addValidateCommands(CLI::App& app, Invocation& call) {
  auto& group = addGroup(app, "validate", "Test nodes, find what is bad, and report");
  addRun(group, call);
  addIsolate(group, call);
  auto [report_command, args] = addCommand(group, "report",
                                           "Report outliers, racks, devices and drift of all "
                                           "measurements; exit 1 when something differs",
                                           call, validateReport);
  asksServer(report_command, call);
  report_command.add_option("--html", args.html, "Write one self-contained HTML page");
  report_command.add_option("--json-file", args.json, "Write it as JSON");
  report_command.add_option("--junit", args.junit, "Write it as test results, one case a node");
  report_command
      .add_option("--false-alarms", args.request.false_alarms,
                  "Expected number of false alarms in the report")
      ->check(CLI::Range(0.001, 1000.0))
      ->capture_default_str();
  addDays(report_command, args.request);
  addCommand(group, "checks",
             "List all checks: what they test, from which level on, what they need, where their "
             "expected values come from",
             call, validateChecks);
  auto [baseline, request] =
      addCommand(group, "baseline", "Show what is typical of each SKU, from its own history", call,
                 validateBaseline);
  addDays(baseline, request);
  asksServer(baseline, call);
}

}  // namespace muster::cli
