// SPDX-License-Identifier: Apache-2.0
// Which faults there are, and what a rehearsal says.
#include "base/json_output.h"
#include "fabric/compare/compare.h"
#include "fabric/rehearsal/rehearsal.h"
#include "inventory/model/cluster.h"
#include "inventory/model/fabric.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::fabric {

std::string_view toString(FaultKind kind) {
  switch (kind) {
    case FaultKind::CablePulled:
      return "cable-pulled";
    case FaultKind::SwitchLost:
      return "switch-lost";
    case FaultKind::RailSwapped:
      return "rail-swapped";
    case FaultKind::PartitionsTypo:
      return "partitions-typo";
    case FaultKind::ManagerLost:
      return "manager-lost";
  }
  return "unknown";
}

std::vector<Fault> faultsOf(const Topology& declared, const inventory::Fabric& fabric,
                            const std::set<FaultKind>& kinds) {
  std::vector<Fault> faults;
  if (kinds.count(FaultKind::CablePulled))
    for (const auto& link : declared.links)
      faults.push_back({FaultKind::CablePulled,
                        fmt::format("{} – {}", toString(link.a), toString(link.b)),
                        {link}});
  if (kinds.count(FaultKind::SwitchLost))
    for (const auto& [name, device] : declared.devices)
      if (device.is_switch) faults.push_back({FaultKind::SwitchLost, name, {}});
  if (kinds.count(FaultKind::RailSwapped)) {
    std::map<std::string, std::vector<Link>, std::less<>>
        rails;  // host → cables of its first two HCAs, the HCA's end first
    for (const auto& link : declared.links)
      for (const auto& [hca, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
        if (!declared.devices.at(hca.node).is_switch && declared.devices.at(other.node).is_switch)
          if (auto& own = rails[std::string(hostOf(hca.node))]; own.size() < 2)
            own.push_back({hca, other, link.width_speed});
    for (auto& [host, links] : rails)
      if (links.size() == 2) faults.push_back({FaultKind::RailSwapped, host, std::move(links)});
  }
  if (kinds.count(FaultKind::PartitionsTypo))
    faults.push_back({FaultKind::PartitionsTypo, "a mistake in partitions.conf", {}});
  if (kinds.count(FaultKind::ManagerLost))
    faults.push_back(
        {FaultKind::ManagerLost,
         fabric.subnet_managers.empty() ? std::string("none") : fabric.subnet_managers.front(),
         {}});
  return faults;
}

namespace {

/// What two faults of a group may not share.
std::set<std::string> touchedBy(const Fault& fault, const Topology& declared) {
  std::set<std::string> out;
  for (const auto& link : fault.links)
    for (const auto& end : {link.a, link.b})
      if (fault.kind != FaultKind::RailSwapped || !declared.devices.at(end.node).is_switch)
        out.emplace(hostOf(end.node));
  return out;
}

}  // namespace

std::vector<std::vector<Fault>> faultGroups(std::vector<Fault> faults, const Topology& declared,
                                            std::size_t together) {
  struct Group {
    std::vector<Fault> faults;
    std::set<std::string> touched;
  };
  // First those that are choosier, cables between switches: of one scalable unit four fit together,
  // and four cables of HCAs beside them.
  const auto is_uplink = [&](const Fault& fault) {
    return fault.kind == FaultKind::CablePulled &&
           declared.devices.at(fault.links[0].a.node).is_switch &&
           declared.devices.at(fault.links[0].b.node).is_switch;
  };
  std::stable_partition(faults.begin(), faults.end(), is_uplink);
  std::vector<Group> groups;
  std::map<FaultKind, std::size_t> first_open;  // where the groups of a kind begin
  for (auto& fault : faults) {
    const bool may_share =
        fault.kind == FaultKind::CablePulled || fault.kind == FaultKind::RailSwapped;
    const auto touched = may_share ? touchedBy(fault, declared) : std::set<std::string>();
    const auto fits = [&](const Group& group) {
      return may_share && group.faults.front().kind == fault.kind &&
             group.faults.size() < together &&
             std::none_of(
                 touched.begin(), touched.end(),
                 [&](const auto& name) { return group.touched.count(name) > 0; });
    };
    auto& open = first_open.emplace(fault.kind, groups.size()).first->second;
    auto group =
        std::find_if(groups.begin() + static_cast<std::ptrdiff_t>(std::min(open, groups.size())),
                     groups.end(), fits);
    if (group == groups.end()) group = groups.insert(group, Group{});
    group->touched.insert(touched.begin(), touched.end());
    group->faults.push_back(std::move(fault));
  }
  std::vector<std::vector<Fault>> out;
  for (auto& group : groups) out.push_back(std::move(group.faults));
  return out;
}

std::vector<std::string> misnamed(const std::vector<Fault>& faults, const Comparison& compared) {
  const auto wrong = [&](std::string_view wanted) {
    const auto said = compared.deviations.empty()
                          ? std::string("nothing")
                          : fmt::format("{} at {}", toString(compared.deviations[0].kind),
                                        toString(compared.deviations[0].at));
    return std::vector<std::string>{fmt::format("named as {} ({} deviations) instead of {}", said,
                                                compared.deviations.size(), wanted)};
  };
  if (faults.front().kind == FaultKind::SwitchLost) {
    const bool exact = compared.deviations.size() == 1 &&
                       compared.deviations[0].kind == DeviationKind::MissingNode &&
                       compared.deviations[0].at.node == faults[0].name;
    return exact ? std::vector<std::string>{} : wrong("the missing switch");
  }
  if (compared.repairs.size() != faults.size())
    return wrong(faults.size() == 1 ? "one job" : fmt::format("{} jobs", faults.size()));
  const bool pulled = faults.front().kind == FaultKind::CablePulled;
  bool exact = compared.deviations.size() == (pulled ? 1 : 2) * faults.size();
  // Each fault has one repair of its own: its ends are what the moves touch.
  std::set<std::set<Port>> wanted, told;
  for (const auto& fault : faults) {
    std::set<Port> ends;
    for (const auto& link : fault.links) ends.insert({link.a, link.b});
    wanted.insert(std::move(ends));
  }
  for (const auto& repair : compared.repairs) {
    std::set<Port> ends;
    exact = exact && repair.moves.size() == (pulled ? 1u : 2u);
    for (const auto& move : repair.moves) {
      exact = exact && move.kind == (pulled ? Move::Kind::Plug : Move::Kind::MoveEnd);
      ends.insert({move.other, move.to});
      if (!pulled) ends.insert(move.from);
    }
    told.insert(std::move(ends));
  }
  for (const auto& one : compared.deviations)
    exact = exact && (pulled || one.kind == DeviationKind::RailSwapped);
  return exact && told == wanted ? std::vector<std::string>{}
                                 : wrong(pulled ? "the pulled cable" : "a rail swap");
}

int RehearsalReport::exitCode() const {
  if (!error.empty()) return kNoAnswer;
  return std::all_of(outcomes.begin(), outcomes.end(),
                     [](const auto& one) { return one.problems.empty(); })
             ? kHeld
             : kBroke;
}

std::string toText(const RehearsalReport& report) {
  if (!report.error.empty()) return fmt::format("no answer: {}\n", report.error);
  std::string out = fmt::format(
      "fabric {}: {} HCAs, {} switches, {} cables in ibsim{}; routing {}, {} pairs of HCAs, all "
      "reached{}\n",
      report.fabric, report.hcas, report.switches, report.cables,
      report.slowed ? " (links as HDR: it knows nothing faster)" : "", report.routing_engine,
      report.healthy.pairs,
      report.healthy.reversed
          ? fmt::format(" ({} routes between ports above the leaves turn up again at a leaf)",
                        report.healthy.reversed)
          : "");
  struct Sum {
    std::size_t all = 0, held = 0;
    std::map<std::string, std::size_t> effects;
  };
  std::map<FaultKind, Sum> sums;
  for (const auto& one : report.outcomes) {
    auto& sum = sums[one.fault.kind];
    ++sum.all;
    sum.held += one.problems.empty();
    ++sum.effects[one.effect];
    for (const auto& problem : one.problems)
      out +=
          fmt::format("BROKE {:<16} {}: {}\n", toString(one.fault.kind), one.fault.name, problem);
  }
  for (const auto& [kind, sum] : sums) {
    out += fmt::format("{:<16} {} of {} held\n", toString(kind), sum.held, sum.all);
    for (const auto& [effect, times] : sum.effects)
      out += fmt::format("    {:>4} × {}\n", times, effect);
  }
  for (const auto& text : report.left_out) out += fmt::format("not rehearsed: {}\n", text);
  if (report.manager_restarts)
    out += fmt::format("OpenSM stopped sweeping {} times and was started anew\n",
                       report.manager_restarts);
  const auto grouped = std::count_if(report.outcomes.begin(), report.outcomes.end(),
                                     [](const auto& one) { return one.together > 1; });
  if (grouped)
    out += fmt::format(
        "{} of them together with others that they have no switch or host in common with; --alone "
        "takes each by itself\n",
        grouped);
  return out + fmt::format("{} faults in {:.0f} s\n", report.outcomes.size(), report.seconds);
}

std::string toJson(const RehearsalReport& report) {
  nlohmann::json out = {{"format", "muster-fabric-rehearsal/1"},
                        {"fabric", report.fabric},
                        {"held", report.exitCode() == RehearsalReport::kHeld},
                        {"routing_engine", report.routing_engine},
                        {"hcas", report.hcas},
                        {"switches", report.switches},
                        {"cables", report.cables},
                        {"pairs", report.healthy.pairs},
                        {"reversed_routes", report.healthy.reversed},
                        {"rehearsed_as_hdr", report.slowed},
                        {"left_out", report.left_out},
                        {"manager_restarts", report.manager_restarts},
                        {"seconds", report.seconds},
                        {"faults", nlohmann::json::array()}};
  if (!report.error.empty()) out["error"] = report.error;
  for (const auto& one : report.outcomes)
    out["faults"].push_back({{"kind", toString(one.fault.kind)},
                             {"what", one.fault.name},
                             {"effect", one.effect},
                             {"problems", one.problems},
                             {"together", one.together},
                             {"seconds", one.seconds}});
  return jsonText(out, 2);
}

}  // namespace muster::fabric
