// SPDX-License-Identifier: Apache-2.0
// The tables of `raid` of a profile: what its RAID controllers show.
#include "inventory/model/hardware_raid.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace muster::inventory {

namespace {

constexpr int kMaxDrives = 128;

constexpr TextFormat kVolumeName{"a name of at most 15 lower-case letters, digits and '-'",
                                 "^[a-z0-9][a-z0-9-]{0,14}$", "system"};
constexpr TextFormat kController{"a glob of the Id or name of a RAID controller, as its BMC has it",
                                 "^[!-~]([ -~]{0,126}[!-~])?$", "RAID.SL.*"};
constexpr TextFormat kToolWord{"a word of a command, without a shell", "^.{1,300}$", "{node}"};

ObjectSpec make_hardwareVolumeSpec() {
  return Table<HardwareVolume>("raid-volume", "RAID volume",
                               "A volume of a RAID controller, which the machine sees as one disk.")
      .optional("controller", &HardwareVolume::controller, text(kController),
                "Its controller; absent: the only one that makes volumes.")
      .required("raid", &HardwareVolume::level,
                choice({"none", "raid0", "raid1", "raid5", "raid6", "raid10"}),
                "Its level; `none` is refused, a single drive is raid0.")
      .required("disks", &HardwareVolume::disks, text(kDisk),
                "Which of the controller's drives: serial:…, wwn:…, smallest or size:LOW-HIGH. "
                "Drives of other declared volumes do not count; exactly `count` must fit.")
      .optional("count", &HardwareVolume::count, integer(1, kMaxDrives), "How many drives.")
      .printsAlways({"count"})
      .check([](HardwareVolume& volume, const Value& map, Reader& reader) {
        if (const auto why = whyNoRaid(volume.level, volume.count); !why.empty())
          reader.error(place(map, "raid"), why,
                       volume.level == RaidLevel::None ? "write raid0 or raid1"
                                                       : "correct count, or the level");
      })
      .spec();
}
MUSTER_SPEC(hardwareVolumeSpec)

/// What a word may stand for; anything else in braces would reach the program as it is written.
void checkWords(const std::vector<std::string>& words, std::vector<std::string_view> known,
                std::vector<std::string_view> needed, const Value& where, Reader& reader) {
  for (const auto each : {"{node}", "{rack}", "{unit}"}) known.emplace_back(each);
  std::string all;
  for (const auto& word : words) all += word + '\n';
  for (auto open = all.find('{'); open != std::string::npos; open = all.find('{', open + 1)) {
    const auto close = all.find('}', open);
    const auto name = all.substr(open, close == std::string::npos ? 20 : close - open + 1);
    if (std::ranges::find(known, name) == known.end())
      reader.error(where, fmt::format("{} stands for nothing here", shorten(name)),
                   "docs/images.md says what may be used");
  }
  for (const auto need : needed)
    if (all.find(need) == std::string::npos)
      reader.error(where, fmt::format("the command does not name {}", need),
                   "say by it what is meant");
}

void checkTool(RaidTool& tool, const Value& map, Reader& reader) {
  checkWords(tool.show, {}, {"{node}"}, place(map, "show"), reader);
  checkWords(tool.create, {"{controller}", "{level}", "{drives}", "{name}"},
             {"{node}", "{level}", "{drives}"}, place(map, "create"), reader);
  checkWords(tool.remove, {"{controller}", "{volume}"}, {"{node}", "{volume}"},
             place(map, "remove"), reader);
}

ObjectSpec make_raidToolSpec() {
  return Table<RaidTool>(
             "raid-tool", "RAID tool",
             "A site's command for controllers that no Redfish manages; docs/images.md.")
      .required("show", &RaidTool::show, listOf(text(kToolWord), 1),
                "Program and arguments, run without a shell; prints controllers, drives and "
                "volumes as JSON. {node}, {rack} and {unit} are the node's.")
      .required(
          "create", &RaidTool::create, listOf(text(kToolWord), 1),
          "Makes a volume: {controller}, {level} (RAID1), {drives} (ids with commas), {name}.")
      .required("remove", &RaidTool::remove, listOf(text(kToolWord), 1),
                "Deletes one: {controller}, {volume}.")
      .check(checkTool)
      .spec();
}
MUSTER_SPEC(raidToolSpec)

void checkRaid(HardwareRaid& raid, const Value& map, Reader& reader) {
  const Value& volumes = place(map, "volumes");
  if (raid.volumes.empty())
    return reader.error(volumes, "raid without a volume declares nothing",
                        "name a volume, or remove raid");
  for (std::size_t i = 0; i < raid.volumes.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (raid.volumes[i].disks == raid.volumes[k].disks &&
          raid.volumes[i].controller == raid.volumes[k].controller &&
          raid.volumes[i].level == raid.volumes[k].level &&
          raid.volumes[i].disks.starts_with("serial:"))
        reader.error(volumes,
                     fmt::format("the volumes {} and {} are of the same drive",
                                 raid.volumes[k].name, raid.volumes[i].name),
                     "a drive is of one volume");
}

ObjectSpec make_hardwareRaidSpec() {
  return Table<HardwareRaid>(
             "raid", "RAID",
             "Volumes of its RAID controllers (cards, VROC), made before it is inspected and "
             "imaged. Volumes that are as declared are left alone, others only where a declared "
             "one needs their drives, and only with `muster wipe NODE --data`.")
      .required("volumes", &HardwareRaid::volumes, mapOf(object(hardwareVolumeSpec), kVolumeName),
                "By name.")
      .optional("tool", &HardwareRaid::tool, object(raidToolSpec),
                "Who makes them; absent: the BMC, by Redfish.")
      .check(checkRaid)
      .spec();
}

}  // namespace

MUSTER_SPEC(hardwareRaidSpec)

}  // namespace muster::inventory
