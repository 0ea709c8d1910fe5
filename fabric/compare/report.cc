// SPDX-License-Identifier: Apache-2.0
// What `muster fabric diff` shows: for people, and as JSON.
#include "base/json_output.h"
#include "fabric/compare/compare.h"
#include "fabric/fabric.h"
#include "fabric/fabric_diff.h"
#include "fabric/topology/topology.h"

#include <nlohmann/json.hpp>

namespace muster::fabric {

namespace {

using nlohmann::json;

std::string placeOf(const Port& port) { return port.number ? toString(port) : port.node; }

std::string_view word(Move::Kind kind) {
  switch (kind) {
    case Move::Kind::Plug:
      return "plug";
    case Move::Kind::Pull:
      return "pull";
    case Move::Kind::MoveEnd:
      break;
  }
  return "move-end";
}

json portJson(const Port& port) {
  if (port.node.empty()) return nullptr;
  return {{"device", port.node}, {"port", port.number}};
}

json deviationJson(const Deviation& one) {
  return {{"kind", toString(one.kind)}, {"device", one.at.node}, {"port", one.at.number},
          {"declared", one.declared},   {"found", one.found},    {"repair", one.repair}};
}

json repairJson(const Repair& repair) {
  json moves = json::array();
  for (const auto& move : repair.moves)
    moves.push_back({{"do", word(move.kind)},
                     {"other_end", portJson(move.other)},
                     {"from", portJson(move.from)},
                     {"to", portJson(move.to)}});
  return {{"text", repair.text}, {"moves", std::move(moves)}};
}

}  // namespace

std::string toText(const DiffReport& report) {
  if (!report.error.empty()) return fmt::format("no answer: {}\n", report.error);
  std::string out;
  for (const auto& one : report.comparison.deviations)
    out += fmt::format("{:<17} {}\n    declared: {}\n    found:    {}\n", toString(one.kind),
                       placeOf(one.at), one.declared, one.found);
  if (!report.comparison.repairs.empty()) out += "to do:\n";
  for (std::size_t i = 0; i < report.comparison.repairs.size(); ++i)
    out += fmt::format("{:>4}. {}\n", i + 1, report.comparison.repairs[i].text);
  for (const auto& one : report.comparison.excluded)
    out += fmt::format("excluded: {} {} (declared: {}; found: {})\n", toString(one.kind),
                       placeOf(one.at), one.declared, one.found);
  if (!report.note.empty()) out += report.note + "\n";
  const auto parts = report.found.switch_parts.size();
  out +=
      fmt::format("fabric {}: {} devices and {} links found{}, {}\n", report.fabric,
                  report.found.devices.size(), report.found.links.size(),
                  parts ? fmt::format(" (and {} aggregation nodes of switches)", parts) : "",
                  report.comparison.deviations.empty()
                      ? "all as declared"
                      : fmt::format("{} deviations, {} jobs", report.comparison.deviations.size(),
                                    report.comparison.repairs.size()));
  return out;
}

std::string toJson(const DiffReport& report) {
  json out = {{"format", "muster-fabric-diff/2"},
              {"fabric", report.fabric},
              {"devices", report.found.devices.size()},
              {"links", report.found.links.size()},
              {"equal", report.exitCode() == DiffReport::kEqual},
              {"deviations", json::array()},
              {"repairs", json::array()},
              {"excluded", json::array()}};
  if (!report.error.empty()) out["error"] = report.error;
  if (const auto parts = report.found.switch_parts.size()) out["aggregation_nodes"] = parts;
  if (!report.note.empty()) out["note"] = report.note;
  if (!report.names.empty()) out["answers_as"] = report.names;
  for (const auto& one : report.comparison.deviations)
    out["deviations"].push_back(deviationJson(one));
  for (const auto& one : report.comparison.excluded) out["excluded"].push_back(deviationJson(one));
  for (const auto& repair : report.comparison.repairs) out["repairs"].push_back(repairJson(repair));
  return jsonText(out, 2);
}

}  // namespace muster::fabric
