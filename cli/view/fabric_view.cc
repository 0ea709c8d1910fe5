// SPDX-License-Identifier: Apache-2.0
#include "cli/view/fabric_view.h"

#include "app/fabric/fabric_look.h"
#include "inventory/parse/hostlist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace muster::cli {
namespace {

std::string counted(std::size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

std::string levelText(const app::FabricLevel& level) {
  std::string out =
      fmt::format("  level {}  {}: {}", level.level, inventory::foldHostlist(level.switches),
                  counted(level.cables, "cable", "cables"));
  if (level.deviating > 0) out += fmt::format(", {} not as declared", level.deviating);
  if (level.bad > 0) out += fmt::format(", {} with errors", level.bad);
  return out + "\n";
}

std::string foundText(const std::optional<app::FabricFound>& found) {
  if (!found) return "nobody has compared it with the declaration yet: muster fabric diff\n";
  const auto at = muster::toString(found->looked_at);
  if (!found->error.empty())
    return fmt::format("compared {}: it could not be discovered: {}\n", at, found->error);
  std::string out = fmt::format(
      "compared {}: {}, {}, {}{}\n", at, counted(found->devices, "device", "devices"),
      counted(found->links, "link", "links"), counted(found->deviations, "deviation", "deviations"),
      found->excluded > 0 ? fmt::format(", {} excused", found->excluded) : std::string());
  if (!found->note.empty()) out += "  " + found->note + "\n";
  return out;
}

std::string countersText(const std::optional<app::FabricCounters>& read) {
  if (!read) return "nobody has read its counters yet: muster fabric health\n";
  const auto at = muster::toString(read->looked_at);
  if (!read->error.empty())
    return fmt::format("counters read {}: no answer: {}\n", at, read->error);
  std::vector<std::string> grades;
  for (const auto& [grade, cables] : read->grades)
    grades.push_back(fmt::format("{} {}", cables, grade));
  auto out = fmt::format("counters read {} over {:.0f} s: {}\n", at, read->window_s,
                         grades.empty() ? "no cable" : fmt::format("{}", fmt::join(grades, ", ")));
  for (const auto& hint : read->hints) out += "  " + hint + "\n";
  return out;
}

std::string portText(const app::CableEnd& port) {
  return port.node.empty() ? "?" : fmt::format("{}/{}", port.node, port.number);
}

std::string cableText(const app::FabricCable& cable) {
  auto out =
      fmt::format("  {} – {}  {}{}\n", portText(cable.a), portText(cable.b),
                  cable.width_speed.empty() ? "" : cable.width_speed + "  ", wordOf(cable.state));
  for (const auto& fault : cable.faults)
    out += fmt::format("      {}: declared {}, found {}{}\n", fault.kind,
                       fault.declared.empty() ? "-" : fault.declared,
                       fault.found.empty() ? "-" : fault.found,
                       fault.repair.empty() ? "" : "\n      " + fault.repair);
  if (!cable.health || cable.health->grade == "good") return out;
  out +=
      fmt::format("      counters: {}{}\n", cable.health->grade,
                  cable.health->transceiver.empty() ? "" : " (" + cable.health->transceiver + ")");
  for (const auto& complaint : cable.health->complaints) out += "      " + complaint + "\n";
  if (!cable.health->advice.empty()) out += "      " + cable.health->advice + "\n";
  return out;
}

}  // namespace

std::string fabricText(const app::FabricSummary& fabric,
                       const std::vector<app::FabricCable>& cables) {
  std::string out = fmt::format(
      "fabric {}: {}, {}, {}, {}\n", fabric.name, counted(fabric.switches, "switch", "switches"),
      counted(fabric.hcas, "HCA", "HCAs"), counted(fabric.cables, "cable", "cables"),
      fabric.faulty == 0 ? "none known to be faulty" : fmt::format("{} faulty", fabric.faulty));
  for (const auto& level : fabric.levels) out += levelText(level);
  out += foundText(fabric.found) + countersText(fabric.health);
  for (const auto& cable : cables) out += cableText(cable);
  if (fabric.fabrics.size() > 1)
    out +=
        fmt::format("fabrics of this site: {} (--fabric NAME)\n", fmt::join(fabric.fabrics, ", "));
  return out;
}

nlohmann::json fabricJson(const app::FabricSummary& fabric,
                          const std::vector<app::FabricCable>& cables) {
  auto items = nlohmann::json::array();
  for (const auto& cable : cables) items.push_back(toJson(cable));
  return {{"fabric", toJson(fabric)}, {"cables", std::move(items)}};
}

}  // namespace muster::cli
