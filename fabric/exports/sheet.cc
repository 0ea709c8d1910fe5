// SPDX-License-Identifier: Apache-2.0
#include "fabric/exports/sheet.h"

#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"

#include <algorithm>

namespace muster::fabric {

namespace {

/// Spreadsheets quote what holds a comma or a quote (RFC 4180).
std::string cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string out = "\"";
  for (char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

/// A name that a spreadsheet would compute is a text. Source: OWASP, CSV injection
std::string sheetCell(const std::string& text) {
  constexpr std::string_view kComputed = "=+-@\t\r";
  return cell(!text.empty() && kComputed.find(text.front()) != std::string_view::npos ? "'" + text
                                                                                      : text);
}

std::string shortPort(const Port& port) { return fmt::format("{}/{}", port.node, port.number); }

struct Row {
  Place place;
  Port end, other;
  Place other_place;
  std::string link;
  std::size_t cable;
};

std::string unitText(const Place& place) {
  return place.unit ? std::to_string(place.unit) : std::string();
}

/// Leaves that have another number of cables to one switch above them than to the others.
std::vector<std::string> unevenUplinks(const Topology& declared) {
  auto levels = switchLevels(declared);
  std::map<std::string, std::map<std::string, int>> up;  // switch → switch above → cables
  for (const auto& link : declared.links)
    for (const auto& [lower, upper] :
         {std::pair(link.a.node, link.b.node), std::pair(link.b.node, link.a.node)}) {
      auto low = levels.find(lower), high = levels.find(upper);
      if (low != levels.end() && high != levels.end() && high->second == low->second + 1)
        ++up[lower][upper];
    }
  std::vector<std::string> out;
  for (const auto& [lower, uppers] : up) {
    auto [least, most] =
        std::minmax_element(uppers.begin(), uppers.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
    if (least->second != most->second)
      out.push_back(fmt::format("{} has {} cables to {}, but {} to {}", lower, most->second,
                                most->first, least->second, least->first));
  }
  return out;
}

}  // namespace

std::string Place::str() const {
  return rack.empty() ? "?" : unit ? fmt::format("{} U{}", rack, unit) : rack;
}

std::map<std::string, Place> placesOf(const inventory::Cluster& cluster,
                                      const inventory::Fabric& fabric, const Topology& declared) {
  std::map<std::string, Place, std::less<>> hosts;
  for (const auto& node : cluster.nodes) hosts[node.name.str()] = {node.rack, node.unit};
  for (const auto& group : fabric.switches)
    for (std::size_t i = 0; i < group.names.size(); ++i)
      hosts[group.names[i]] = {
          group.rack, group.unit ? group.unit + static_cast<int>(i) * group.units_apart : 0};
  std::map<std::string, Place> places;
  for (const auto& [name, device] : declared.devices) {
    auto host = hosts.find(hostOf(name));
    places.emplace_hint(places.end(), name, host == hosts.end() ? Place{} : host->second);
  }
  return places;
}

std::string cablingCsv(const Topology& declared, const std::map<std::string, Place>& places,
                       const std::string& rack) {
  std::vector<Row> rows;
  for (std::size_t i = 0; i < declared.links.size(); ++i) {
    const auto& link = declared.links[i];
    for (const auto& [end, other] : {std::pair(&link.a, &link.b), std::pair(&link.b, &link.a)})
      if (const auto& place = places.at(end->node); rack.empty() || place.rack == rack)
        rows.push_back({place, *end, *other, places.at(other->node), link.width_speed, i + 1});
  }
  std::sort(rows.begin(), rows.end(), [](const Row& a, const Row& b) {
    return std::tie(a.place.rack, a.place.unit, a.end) <
           std::tie(b.place.rack, b.place.unit, b.end);
  });
  std::string out = "rack,unit,device,port,label,to_rack,to_unit,to_device,to_port,link,cable\n";
  for (const auto& row : rows)
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n", sheetCell(row.place.rack),
                       unitText(row.place), sheetCell(row.end.node), row.end.number,
                       sheetCell(fmt::format("{} > {} {}", shortPort(row.end),
                                             row.other_place.str(), shortPort(row.other))),
                       sheetCell(row.other_place.rack), unitText(row.other_place),
                       sheetCell(row.other.node), row.other.number, row.link, row.cable);
  return out;
}

std::string cablingSummary(const Topology& declared) {
  std::map<int, int> switches;
  for (const auto& [name, level] : switchLevels(declared)) ++switches[level];
  std::size_t hcas = 0, to_hca = 0;
  for (const auto& [name, device] : declared.devices) hcas += !device.is_switch;
  for (const auto& link : declared.links)
    to_hca +=
        !declared.devices.at(link.a.node).is_switch || !declared.devices.at(link.b.node).is_switch;
  std::string out =
      fmt::format("{} HCAs, {} cables to them, {} between switches; switches by level:", hcas,
                  to_hca, declared.links.size() - to_hca);
  for (const auto& [level, count] : switches) out += fmt::format(" {}", count);
  out += "\n";
  for (const auto& text : unevenUplinks(declared)) out += fmt::format("warning: {}\n", text);
  return out;
}

}  // namespace muster::fabric
