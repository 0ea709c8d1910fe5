// SPDX-License-Identifier: Apache-2.0
#include "discovery/machine_registry.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::discovery {
namespace {

constexpr const char* kKey = "discover.machines";
constexpr int kMaxRaces = 20;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

bool holds(const std::vector<std::string>& all, const std::string& one) {
  return !one.empty() && std::find(all.begin(), all.end(), one) != all.end();
}
bool meet(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return holds(b, one); });
}
void addAll(std::vector<std::string>& to, const std::vector<std::string>& from) {
  for (const auto& one : from)
    if (!holds(to, one)) to.push_back(one);
}
void take(std::string& to, const std::string& from) {
  if (!from.empty()) to = from;
}

/// What the newer sighting says wins; what it does not say stays.
void merge(Machine& to, const Machine& from) {
  take(to.bmc, from.bmc), take(to.vendor, from.vendor), take(to.model, from.model),
      take(to.serial, from.serial), take(to.uuid, from.uuid);
  take(to.bmc_version, from.bmc_version), take(to.boot_mac, from.boot_mac),
      take(to.relay, from.relay), take(to.credential, from.credential);
  if (!from.certificate.empty() && from.certificate != to.certificate)
    to.certificate_approved_by.clear();  // it was said of the other one
  take(to.certificate, from.certificate),
      take(to.certificate_approved_by, from.certificate_approved_by);
  const bool surveyed = from.seen_by.contains("redfish") && !from.serial.empty();
  if (surveyed) {  // a whole look: parts that are gone are gone
    to.note = from.note;
    to.gpus = from.gpus;
    if (!from.macs.empty()) to.macs = from.macs;
    if (!from.bmc_macs.empty()) to.bmc_macs = from.bmc_macs;
    if (!to.boot_mac.empty() && !holds(to.macs, to.boot_mac)) to.macs.push_back(to.boot_mac);
  } else {
    take(to.note, from.note);
    addAll(to.macs, from.macs);
    addAll(to.bmc_macs, from.bmc_macs);
  }
  to.seen_by.insert(from.seen_by.begin(), from.seen_by.end());
}

}  // namespace

Result<MachineRegistry> MachineRegistry::parse(const std::string& text) {
  const auto json = jsonOrNone(text, kKeptJson);
  if (!json.is_object() || !json.contains("machines") || !json["machines"].is_array())
    return fail(
        ErrorCode::Corrupt,
        "the registry of discovered machines is damaged; `muster discover forget --all` begins "
        "a new one");
  MachineRegistry registry;
  for (const auto& entry : json["machines"]) {
    TRY(machine, machineOf(entry));
    registry.machines_.push_back(std::move(machine));
  }
  return registry;
}

std::string MachineRegistry::str() const {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& machine : machines_) out.push_back(toJson(machine));
  return jsonText(nlohmann::json{{"machines", std::move(out)}});
}

Result<MachineRegistry> MachineRegistry::read(lifecycle::Store& store) {
  TRY(text, store.getValue(kKey));
  return text && !text->empty() ? parse(*text) : Result<MachineRegistry>(MachineRegistry());
}

Result<std::size_t> MachineRegistry::find(const std::string& id) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const auto& machine = machines_[i];
    const auto mac = Mac::parse(id);
    const auto slash = machine.bmc.find("//");
    const bool same_mac =
        mac && (holds(machine.macs, mac->str()) || holds(machine.bmc_macs, mac->str()));
    const bool same_bmc =
        !machine.bmc.empty() &&
        (machine.bmc == id || (slash != std::string::npos && machine.bmc.substr(slash + 2) == id));
    if (machine.id() == id || machine.serial == id || same_bmc || same_mac) found.push_back(i);
  }
  if (found.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("no machine \"{}\" was seen; `muster discover` lists them", id));
  if (found.size() > 1)
    return fail(
        ErrorCode::Conflict,
        fmt::format("\"{}\" is {} machines; name one by its BMC's address", id, found.size()));
  return found.front();
}

/// A BMC's address is its own; the address may move, but not the BMC's MAC. NICs tell the machine
/// that they are in.
std::size_t MachineRegistry::ownerOf(const Machine& sighting) const {
  for (std::size_t i = 0; i < machines_.size(); ++i)
    if (!sighting.bmc.empty() && machines_[i].bmc == sighting.bmc) return i;
  for (std::size_t i = 0; i < machines_.size(); ++i) {
    const auto& one = machines_[i];
    const bool both_bmcs = !sighting.bmc.empty() && !one.bmc.empty();
    if (meet(one.bmc_macs, sighting.bmc_macs)) return i;
    if (both_bmcs) continue;  // two BMCs that answer are two machines, whatever else they share
    if (sameUuid(one.uuid, sighting.uuid) || meet(one.macs, sighting.macs) ||
        meet(one.bmc_macs, sighting.macs) || meet(one.macs, sighting.bmc_macs))
      return i;
  }
  return kNone;
}

/// NICs that were heard before their machine was known.
void MachineRegistry::absorbLooseNics(std::size_t into) {
  for (std::size_t i = machines_.size(); i-- > 0;) {
    if (i == into || !machines_[i].bmc.empty() || machines_[i].approved()) continue;
    auto& owner = machines_[into];
    const auto& loose = machines_[i];
    const bool of_bmc = meet(owner.bmc_macs, loose.macs);
    if (!of_bmc && !meet(owner.macs, loose.macs) && !sameUuid(owner.uuid, loose.uuid)) continue;
    if (!of_bmc) {
      take(owner.boot_mac, loose.boot_mac), take(owner.relay, loose.relay);
      addAll(owner.macs, loose.macs);
    }
    owner.seen_by.insert(loose.seen_by.begin(), loose.seen_by.end());
    owner.first_seen = std::min(owner.first_seen, loose.first_seen);
    machines_.erase(machines_.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < into) --into;
  }
}

Result<void> MachineRegistry::note(Machine sighting, WallTime now) {
  auto at = ownerOf(sighting);
  if (at == kNone) {
    if (machines_.size() >= kMaxMachines)
      return fail(
          ErrorCode::Conflict,
          fmt::format("{} machines are registered already; `muster discover forget` makes room",
                      kMaxMachines));
    sighting.first_seen = sighting.last_seen = now;
    at = machines_.size();
    machines_.push_back(std::move(sighting));
  } else {
    auto& machine = machines_[at];
    const bool nic_of_bmc = sighting.bmc.empty() && meet(machine.bmc_macs, sighting.macs);
    if (nic_of_bmc) sighting.macs.clear(), sighting.boot_mac.clear(), sighting.relay.clear();
    merge(machine, sighting);
    machine.last_seen = now;
  }
  if (!machines_[at].bmc.empty()) absorbLooseNics(at);
  return {};
}

bool MachineRegistry::forget(const std::string& id) {
  const auto found = find(id);
  if (found) machines_.erase(machines_.begin() + static_cast<std::ptrdiff_t>(*found));
  return found.has_value();
}

Result<MachineRegistry> updateRegistry(
    lifecycle::Store& store, const std::function<Result<void>(MachineRegistry&)>& change) {
  for (int race = 0; race < kMaxRaces; ++race) {
    TRY(before, store.getValue(kKey));
    TRY(registry, before && !before->empty() ? MachineRegistry::parse(*before)
                                             : Result<MachineRegistry>(MachineRegistry()));
    TRY_OK(change(registry));
    const auto text = registry.str();
    if (before && *before == text) return registry;
    TRY(written, store.exchangeValue(kKey, before, text));
    if (written) return registry;
  }
  return fail(ErrorCode::Unavailable,
              "other processes keep writing the registry of discovered machines; try again");
}

}  // namespace muster::discovery
