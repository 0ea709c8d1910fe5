// Which faults there are, and what a rehearsal says.
#include "fabric/rehearsal.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::fabric {

std::string_view toString(FaultKind kind) {
  switch (kind) {
    case FaultKind::CablePulled: return "cable-pulled";
    case FaultKind::SwitchLost: return "switch-lost";
    case FaultKind::RailSwapped: return "rail-swapped";
    case FaultKind::PartitionsTypo: return "partitions-typo";
    case FaultKind::ManagerLost: return "manager-lost";
  }
  return "unknown";
}

std::vector<Fault> faultsOf(const Topology& declared, const inventory::Fabric& fabric, const std::set<FaultKind>& kinds) {
  std::vector<Fault> faults;
  if (kinds.count(FaultKind::CablePulled))
    for (const auto& link : declared.links)
      faults.push_back({FaultKind::CablePulled, fmt::format("{} – {}", toString(link.a), toString(link.b)), {link}});
  if (kinds.count(FaultKind::SwitchLost))
    for (const auto& [name, device] : declared.devices)
      if (device.is_switch) faults.push_back({FaultKind::SwitchLost, name, {}});
  if (kinds.count(FaultKind::RailSwapped)) {
    std::map<std::string, std::vector<Link>, std::less<>> rails;  // host → cables of its first two HCAs, the HCA's end first
    for (const auto& link : declared.links)
      for (const auto& [hca, other] : {std::pair(link.a, link.b), std::pair(link.b, link.a)})
        if (!declared.devices.at(hca.node).is_switch && declared.devices.at(other.node).is_switch)
          if (auto& own = rails[std::string(hostOf(hca.node))]; own.size() < 2) own.push_back({hca, other, link.width_speed});
    for (auto& [host, links] : rails)
      if (links.size() == 2) faults.push_back({FaultKind::RailSwapped, host, std::move(links)});
  }
  if (kinds.count(FaultKind::PartitionsTypo)) faults.push_back({FaultKind::PartitionsTypo, "a slip in partitions.conf", {}});
  if (kinds.count(FaultKind::ManagerLost))
    faults.push_back({FaultKind::ManagerLost, fabric.subnet_managers.empty() ? std::string("none") : fabric.subnet_managers.front(), {}});
  return faults;
}

int RehearsalReport::exitCode() const {
  if (!error.empty()) return kNoAnswer;
  return std::all_of(outcomes.begin(), outcomes.end(), [](const auto& one) { return one.problems.empty(); }) ? kHeld : kBroke;
}

std::string toText(const RehearsalReport& report) {
  if (!report.error.empty()) return fmt::format("no answer: {}\n", report.error);
  std::string out =
      fmt::format("fabric {}: {} HCAs, {} switches, {} cables in ibsim{}; routing {}, {} pairs of HCAs, all reached\n", report.fabric,
                  report.hcas, report.switches, report.cables, report.slowed ? " (links as HDR: it knows nothing faster)" : "",
                  report.routing_engine, report.healthy.pairs);
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
    for (const auto& problem : one.problems) out += fmt::format("BROKE {:<16} {}: {}\n", toString(one.fault.kind), one.fault.name, problem);
  }
  for (const auto& [kind, sum] : sums) {
    out += fmt::format("{:<16} {} of {} held\n", toString(kind), sum.held, sum.all);
    for (const auto& [effect, times] : sum.effects) out += fmt::format("    {:>4} × {}\n", times, effect);
  }
  for (const auto& text : report.left_out) out += fmt::format("not rehearsed: {}\n", text);
  if (report.manager_restarts) out += fmt::format("OpenSM stopped sweeping {} times and was started anew\n", report.manager_restarts);
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
                             {"seconds", one.seconds}});
  return out.dump(2);
}

}  // namespace muster::fabric
