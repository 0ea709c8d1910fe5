// SPDX-License-Identifier: Apache-2.0
#include "app/fabric/fabric_cables.h"

#include "base/json_members.h"
#include "fabric/topology/topology.h"

#include <algorithm>
#include <map>

namespace muster::app {
namespace {

using fabric::Port;
using nlohmann::json;

const json& arrayOf(const json& object, const char* name) {
  static const json none = json::array();
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : none;
}

Port portOf(const json& object) {
  const auto number = object.find("port");
  return {textOf(object, "device"),
          number != object.end() && number->is_number_integer() ? number->get<int>() : 0};
}

CableEnd endOf(const Port& port) { return {port.node, port.number}; }

class Builder {
 public:
  Builder(const fabric::Topology& declared) : levels_(switchLevels(declared)) {
    for (const auto& link : declared.links) {
      places_[link.a] = places_[link.b] = out_.cables.size();
      devices_[link.a.node].push_back(out_.cables.size());
      devices_[link.b.node].push_back(out_.cables.size());
      out_.cables.push_back(
          {endOf(link.a), endOf(link.b), link.width_speed, levelOf(link.a, link.b)});
    }
    for (const auto& [name, device] : declared.devices)
      ++(device.is_switch ? out_.switches : out_.hcas);
  }

  void addDiff(const json& report) {
    if (!textOf(report, "error").empty()) return;
    for (auto& cable : out_.cables) cable.state = CableState::AsDeclared;
    for (const auto& one : arrayOf(report, "excluded")) add(one, CableState::Excused);
    for (const auto& one : arrayOf(report, "deviations")) add(one, CableState::Deviates);
  }

  void addHealth(const json& report) {
    for (const auto& link : arrayOf(report, "links")) {
      CableHealth health{
          textOf(link, "grade"), {}, textOf(link, "advice"), textOf(link, "transceiver")};
      std::optional<std::size_t> place;
      for (const auto& end : arrayOf(link, "ends")) {
        if (const auto known = places_.find(portOf(end)); known != places_.end())
          place = known->second;
        for (const auto& one : arrayOf(end, "complaints"))
          health.complaints.push_back(textOf(one, "text"));
      }
      if (place) out_.cables[*place].health = std::move(health);
    }
  }

  FabricView take() {
    std::map<int, FabricLevel> levels;
    for (const auto& [name, level] : levels_) levels[level].switches.push_back(name);
    for (const auto& cable : out_.cables) {
      if (cable.b.node.empty()) continue;
      auto& level = levels[cable.level];
      ++level.cables;
      level.deviating += cable.state == CableState::Deviates;
      level.bad += cable.health && cable.health->grade == "bad";
    }
    for (auto& [number, level] : levels) {
      level.level = number;
      out_.levels.push_back(std::move(level));
    }
    return std::move(out_);
  }

 private:
  int levelOf(const Port& a, const Port& b) const {
    const auto x = levels_.find(a.node), y = levels_.find(b.node);
    if (x == levels_.end() || y == levels_.end())
      return x != levels_.end() ? x->second : y != levels_.end() ? y->second : 0;
    return std::min(x->second, y->second);
  }

  void add(const json& one, CableState state) {
    const CableFault fault{textOf(one, "kind"), textOf(one, "declared"), textOf(one, "found"),
                           textOf(one, "repair")};
    const auto port = portOf(one);
    std::vector<std::size_t> whose;
    if (const auto known = places_.find(port); known != places_.end())
      whose = {known->second};
    else if (const auto device = devices_.find(port.node);
             device != devices_.end() && port.number == 0)
      whose = device->second;  // the whole device: each of its cables
    if (whose.empty()) {
      whose = {out_.cables.size()};
      out_.cables.push_back({endOf(port), {}, {}});
    }
    for (const auto place : whose) {
      auto& cable = out_.cables[place];
      cable.state = state;
      cable.faults.push_back(fault);
    }
  }

  std::map<std::string, int> levels_;
  std::map<Port, std::size_t> places_;
  std::map<std::string, std::vector<std::size_t>> devices_;
  FabricView out_;
};

}  // namespace

std::string_view wordOf(CableState state) {
  switch (state) {
    case CableState::AsDeclared:
      return "as-declared";
    case CableState::Deviates:
      return "deviates";
    case CableState::Excused:
      return "excused";
    case CableState::NotSeen:
      break;
  }
  return "not-seen";
}

FabricView fabricView(const fabric::Topology& declared,
                      const std::optional<fabric::KeptReport>& diff,
                      const std::optional<fabric::KeptReport>& health) {
  Builder builder(declared);
  if (diff) builder.addDiff(diff->report);
  if (health) builder.addHealth(health->report);
  return builder.take();
}

}  // namespace muster::app
