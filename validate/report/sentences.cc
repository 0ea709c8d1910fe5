// SPDX-License-Identifier: Apache-2.0
// What a report says in words.
#include "inventory/parse/hostlist.h"
#include "validate/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

namespace muster::validate::report {
namespace {

using history::Alarm;
using history::AlarmKind;

std::string hostlistOf(const std::vector<std::string>& nodes) {
  return inventory::foldHostlist(nodes);
}

}  // namespace

std::string shortNumber(double value) {
  if (!std::isfinite(value)) return "–";
  return fmt::format("{:.4g}", value);
}

std::string leftOutText(const history::Statistics& statistics) {
  std::vector<std::string> parts;
  if (statistics.not_evaluated > 0)
    parts.push_back(fmt::format(
        "not evaluated: {} of {} metrics, which fewer than {} nodes or devices of one SKU have, or "
        "which are nothing but zeros",
        statistics.not_evaluated, statistics.groups.size(), statistics.policy.least_group));
  if (statistics.from_future > 0)
    parts.push_back(
        fmt::format("left out: {} measurements of a time that is still to come (a clock was wrong)",
                    statistics.from_future));
  if (statistics.no_numbers > 0)
    parts.push_back(fmt::format("left out: {} values that are no numbers", statistics.no_numbers));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string sentence(const Alarm& alarm) {
  const auto much = alarm.typical == 0
                        ? fmt::format("{} above", shortNumber(alarm.value))
                        : fmt::format("{:.1f} % {}", 100 * std::abs(alarm.change()),
                                      alarm.value < alarm.typical ? "below" : "above");
  switch (alarm.kind) {
    case AlarmKind::Bits:
      if (alarm.others == 0)
        return fmt::format("{} and others of its kind do not agree on the {}", alarm.subject,
                           alarm.metric);
      return fmt::format("{} computes other bits than {} others of its kind: {}", alarm.subject,
                         alarm.others, alarm.metric);
    case AlarmKind::Drift:
      return fmt::format("{} has drifted: {} {} what it was, its peers have not", alarm.subject,
                         alarm.metric, much);
    case AlarmKind::FleetDrift:
      if (alarm.members.empty())
        return fmt::format("{} as a whole has drifted: the median of {} is {} what it was",
                           alarm.subject, alarm.metric, much);
      return fmt::format("{} of {} have drifted: {} is {} what it was, of the others it is not",
                         hostlistOf(alarm.members), alarm.subject, alarm.metric, much);
    case AlarmKind::Populations:
      return fmt::format(
          "{} of {} are {} the other {} values of it: {} is near {} there, {} elsewhere; compare "
          "one node of each part (firmware, cables, clocks, power)",
          hostlistOf(alarm.members), alarm.subject, much, alarm.others, alarm.metric,
          shortNumber(alarm.value), shortNumber(alarm.typical));
    case AlarmKind::Intermittent:
      return fmt::format(
          "{} is like its peers now, but fell {} times: {} was {} what was typical then, {}",
          alarm.subject, alarm.others, alarm.metric, shortNumber(alarm.value),
          shortNumber(alarm.typical));
    case AlarmKind::Spread:
      return fmt::format(
          "{}: the {} values of {} differ by {:.0f} % of their median {} (robust σ), more than "
          "parts of one kind do, and lie in no places: nobody is like his peers there; compare the "
          "best node with the worst (firmware, cables, clocks, power)",
          alarm.subject, alarm.others, alarm.metric, 100 * alarm.sigmas,
          shortNumber(alarm.typical));
    default:
      return fmt::format("{} is {} what is typical: {} {}, typical {}", alarm.subject, much,
                         alarm.metric, shortNumber(alarm.value), shortNumber(alarm.typical));
  }
}

}  // namespace muster::validate::report
