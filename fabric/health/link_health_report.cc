// SPDX-License-Identifier: Apache-2.0
// What `muster fabric health` shows: for people, as JSON, as metrics.
#include "base/json_output.h"
#include "fabric/health/link_health.h"

#include <nlohmann/json.hpp>

namespace muster::fabric {

namespace {

using links::Grade;
using nlohmann::json;

std::string nameOf(const Link& link) {
  return fmt::format("{} -- {}", toString(link.a), toString(link.b));
}

json endJson(const LinkVerdict::End& end) {
  json out = {{"device", end.port.node},
              {"port", end.port.number},
              {"grade", links::toString(end.verdict.grade)},
              {"waits", end.verdict.waits},
              {"complaints", json::array()}};
  if (const auto& ber = end.verdict.ber)
    out["ber"] = {{"low", ber->low}, {"high", ber->high}, {"estimate", ber->estimate}};
  if (end.verdict.load) out["load"] = *end.verdict.load;
  for (const auto& one : end.verdict.complaints)
    out["complaints"].push_back(
        {{"grade", links::toString(one.grade)}, {"kind", one.kind}, {"text", one.text}});
  return out;
}

std::string label(std::string_view text) {
  std::string out;
  for (char c : text) out += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return out;
}

}  // namespace

std::string toText(const LinkHealthReport& report, bool all) {
  if (!report.error.empty()) return fmt::format("no answer: {}\n", report.error);
  std::string out;
  for (const auto& one : report.links) {
    if (one.grade == Grade::Good && !all) continue;
    out += fmt::format("{:<8} {}{}\n", links::toString(one.grade), nameOf(one.link),
                       one.transceiver.empty() ? "" : "  [" + one.transceiver + "]");
    for (const auto& text : one.texts(all ? Grade::Good : Grade::Warning))
      out += fmt::format("    {}\n", text);
    if (const auto advice = one.advice(); !advice.empty()) out += fmt::format("    → {}\n", advice);
  }
  for (const auto& hint : report.hints) out += hint + "\n";
  return out +
         fmt::format(
             "{} cables in {:.1f} to {:.1f} s: {} bad, {} unproven, {} with warnings, {} good\n",
             report.links.size(), report.window.shortest_seconds, report.window.longest_seconds,
             report.count(Grade::Bad), report.count(Grade::Unproven), report.count(Grade::Warning),
             report.count(Grade::Good));
}

std::string toJson(const LinkHealthReport& report) {
  json out = {
      {"format", "muster-fabric-health/1"},
      {"fabric", report.fabric},
      {"window_seconds",
       {{"shortest", report.window.shortest_seconds}, {"longest", report.window.longest_seconds}}},
      {"links", json::array()},
      {"hints", report.hints}};
  if (!report.error.empty()) out["error"] = report.error;
  for (const auto& one : report.links) {
    json row = {{"link", one.link.width_speed},
                {"grade", links::toString(one.grade)},
                {"advice", one.advice()},
                {"ends", json::array()}};
    if (!one.transceiver.empty()) row["transceiver"] = one.transceiver;
    for (const auto& end : one.ends) row["ends"].push_back(endJson(end));
    out["links"].push_back(std::move(row));
  }
  return jsonText(out, 2);
}

std::string toPrometheus(const LinkHealthReport& report) {
  std::string out = fmt::format(
      "# HELP muster_fabric_health_answered Whether the counters could be read.\n# TYPE "
      "muster_fabric_health_answered gauge\n"
      "muster_fabric_health_answered {}\n",
      report.error.empty() ? 1 : 0);
  if (!report.error.empty()) return out;
  out +=
      "# HELP muster_fabric_links_by_grade Cables by what their counters say.\n# TYPE "
      "muster_fabric_links_by_grade gauge\n";
  for (auto grade : {Grade::Good, Grade::Warning, Grade::Unproven, Grade::Bad})
    out += fmt::format("muster_fabric_links_by_grade{{grade=\"{}\"}} {}\n", links::toString(grade),
                       report.count(grade));
  out +=
      "# HELP muster_fabric_port_ber_bound The bit error rate is proven to be at least, or at "
      "most, this.\n# TYPE "
      "muster_fabric_port_ber_bound gauge\n";
  for (const auto& one : report.links)
    for (const auto& end : one.ends)
      if (const auto& ber = end.verdict.ber)
        for (auto [bound, value] : {std::pair("least", ber->low), std::pair("most", ber->high)})
          out += fmt::format(
              "muster_fabric_port_ber_bound{{device=\"{}\",port=\"{}\",bound=\"{}\"}} {:g}\n",
              label(end.port.node), end.port.number, bound, value);
  return out;
}

}  // namespace muster::fabric
