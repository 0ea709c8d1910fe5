// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/raid_layout.h"

#include "lifecycle/model/facet.h"
#include "wire/disk_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace muster::provision {

using bmc::RaidController;
using bmc::RaidDrive;
using bmc::RaidVolume;
using inventory::HardwareVolume;

namespace {

std::string shortWord(const HardwareVolume& volume) {
  return fmt::format("raid{}x{}", wire::raidNumber(volume.level).value_or(0), volume.count);
}

std::string listed(const std::vector<const RaidController*>& controllers) {
  std::vector<std::string> ids;
  for (const auto* each : controllers)
    ids.push_back(each->name.empty() || each->name == each->id
                      ? each->id
                      : fmt::format("{} ({})", each->id, each->name));
  return ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "));
}

class Comparison {
 public:
  Comparison(const std::vector<RaidController>& controllers,
             const std::map<std::string, std::string>& held)
      : controllers_(controllers), held_(held) {}

  std::vector<VolumeStatus> run(const inventory::HardwareRaid& declared) {
    std::vector<VolumeStatus> out;
    for (const auto& volume : declared.volumes) out.push_back({volume});
    for (bool by_name : {true, false})  // one of that name is the one, where several would do
      for (auto& status : out) findPresent(status, by_name);
    for (auto& status : out)
      if (status.state != VolumeState::Present) choose(status);
    return out;
  }

 private:
  using Drives = std::vector<const RaidDrive*>;

  /// Nullptr: `why` says it.
  const RaidController* controllerOf(const HardwareVolume& volume, std::string& why) const {
    std::vector<const RaidController*> all, fits;
    for (const auto& each : controllers_) {
      all.push_back(&each);
      const bool named = lifecycle::matches(volume.controller, each.id) ||
                         lifecycle::matches(volume.controller, each.name);
      if (volume.controller.empty() ? !each.levels.empty() : named) fits.push_back(&each);
    }
    if (fits.size() == 1) return fits.front();
    if (volume.controller.empty())
      why = fits.empty() ? fmt::format(
                               "none of its controllers says that it makes RAID volumes (there are "
                               "{}); name the one that does under `controller`",
                               listed(all))
                         : fmt::format(
                               "several controllers make RAID volumes: {}; name one under "
                               "`controller`",
                               listed(fits));
    else
      why = fits.empty() ? fmt::format("no RAID controller is \"{}\"; there are {}",
                                       volume.controller, listed(all))
                         : fmt::format("\"{}\" fits several controllers: {}", volume.controller,
                                       listed(fits));
    return nullptr;
  }

  void findPresent(VolumeStatus& status, bool by_name) {
    std::string ignored;
    const auto& wanted = status.declared;
    const auto* controller =
        status.state == VolumeState::Present ? nullptr : controllerOf(wanted, ignored);
    const auto rule = wire::DiskRule::parse(wanted.disks);
    if (!controller || !rule) return;
    const auto fitting = rule->fitting(controller->drives);
    for (const auto& volume : controller->volumes) {
      if (claimed_.contains(volume.uri) || volume.is_raw || !volume.is_settled ||
          volume.level != raidWord(wanted.level) ||
          volume.drives.size() != static_cast<std::size_t>(wanted.count) ||
          (by_name && volume.name != wanted.name))
        continue;
      const bool fits = std::ranges::all_of(volume.drives, [&](const std::string& uri) {
        return !claimed_.contains(uri) && std::ranges::any_of(fitting, [&](const RaidDrive* drive) {
          return drive->uri == uri;
        });
      });
      if (!fits) continue;
      status.state = VolumeState::Present;
      status.controller = controller->id;
      status.drives = volume.drives;
      status.wwn = volume.wwn;
      claimed_.insert(volume.uri);
      claimed_.insert(volume.drives.begin(), volume.drives.end());
      return;
    }
  }

  /// Its drives, and what is on them.
  void choose(VolumeStatus& status) {
    const auto& wanted = status.declared;
    const auto* controller = controllerOf(wanted, status.why);
    if (!controller) return;
    status.controller = controller->id;
    status.volumes_uri = controller->volumes_uri;
    status.at_restart = controller->at_restart;
    const auto rule = wire::DiskRule::parse(wanted.disks);
    if (!rule) {
      status.why = rule.error().text();
      return;
    }
    if (const auto word = raidWord(wanted.level);
        !controller->levels.empty() &&
        std::ranges::find(controller->levels, word) == controller->levels.end()) {
      status.why = fmt::format("{} does not make {}; it makes {}", controller->id, word,
                               fmt::join(controller->levels, ", "));
      return;
    }
    Drives fits;
    std::string unusable;
    for (const auto* drive : rule->fitting(controller->drives)) {
      if (claimed_.contains(drive->uri)) continue;
      if (drive->unusable.empty())
        fits.push_back(drive);
      else
        unusable += fmt::format("; {} (serial {}) cannot be used: {}", drive->name, drive->serial,
                                drive->unusable);
    }
    if (fits.size() != static_cast<std::size_t>(wanted.count)) {
      status.why = fmt::format(
          "{} free for it of {}'s {} drives fit \"{}\", {} must{}; write a rule that fits exactly "
          "so many, or add drives",
          fits.size(), controller->id, controller->drives.size(), wanted.disks, wanted.count,
          unusable);
      return;
    }
    for (const auto* drive : fits) status.drives.push_back(drive->uri);
    claimed_.insert(status.drives.begin(), status.drives.end());
    weigh(status, *controller, fits);
  }

  void weigh(VolumeStatus& status, const RaidController& controller, const Drives& drives) const {
    status.state = VolumeState::Free;
    for (const auto& volume : controller.volumes) {
      const auto* of = firstOf(volume, drives);
      if (!of) continue;
      if (volume.is_raw || !volume.is_settled) {
        status.state = VolumeState::Impossible;
        status.why =
            volume.is_raw
                ? fmt::format(
                      "{} (serial {}) is shown to the machine as it is ({}); make it a RAID "
                      "drive at the controller first",
                      of->name, of->serial, volume.name)
                : fmt::format("{} is being made or deleted, or is out of order", volume.name);
        return;
      }
      addReason(status, fmt::format("{} (serial {}) is of volume {} ({} of {} drives)", of->name,
                                    of->serial, volume.name, volume.level, volume.drives.size()));
      status.in_the_way.push_back(volume.uri);
    }
    if (!status.in_the_way.empty()) return;  // what the machine sees are volumes, not drives
    for (const auto* drive : drives)
      if (const auto held = held_.find(drive->serial); held != held_.end())
        addReason(status,
                  fmt::format("{} (serial {}) holds {}", drive->name, drive->serial, held->second));
  }

  static const RaidDrive* firstOf(const RaidVolume& volume, const Drives& drives) {
    const auto found = std::ranges::find_if(drives, [&](const RaidDrive* drive) {
      return std::ranges::find(volume.drives, drive->uri) != volume.drives.end();
    });
    return found == drives.end() ? nullptr : *found;
  }

  static void addReason(VolumeStatus& status, const std::string& why) {
    status.state = VolumeState::Taken;
    status.why += (status.why.empty() ? "" : "; ") + why;
  }

  const std::vector<RaidController>& controllers_;
  const std::map<std::string, std::string>& held_;
  std::set<std::string> claimed_;  ///< URIs of volumes and drives
};

}  // namespace

std::string raidWord(wire::RaidLevel level) {
  return fmt::format("RAID{}", wire::raidNumber(level).value_or(0));
}

std::map<std::string, std::string> heldBySerial(const wire::Hardware& hardware) {
  std::map<std::string, std::string> out;
  for (const auto& disk : hardware.disks)
    if (!disk.serial.empty() && disk.use != wire::DiskUse::Empty) out[disk.serial] = disk.content;
  return out;
}

std::vector<VolumeStatus> compareVolumes(const inventory::HardwareRaid& declared,
                                         const std::vector<RaidController>& controllers,
                                         const std::map<std::string, std::string>& held) {
  return Comparison(controllers, held).run(declared);
}

std::string declaredRaid(const inventory::HardwareRaid& declared) {
  std::string out;
  for (const auto& volume : declared.volumes)
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", volume.name, shortWord(volume));
  return out;
}

std::string observedRaid(const std::vector<VolumeStatus>& volumes) {
  std::string out;
  for (const auto& each : volumes) {
    const auto word = each.state == VolumeState::Present ? shortWord(each.declared)
                      : each.state == VolumeState::Free  ? "none"
                      : each.state == VolumeState::Taken ? "taken"
                                                         : "impossible";
    out += fmt::format("{}{}={}", out.empty() ? "" : ",", each.declared.name, word);
  }
  return out;
}

}  // namespace muster::provision
