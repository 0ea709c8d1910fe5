// SPDX-License-Identifier: Apache-2.0
// The tables of `root` and `storage`: a profile's system disk and those beside it.
#include "inventory/model/disk_layout.h"
#include "inventory/schema/binding.h"
#include "inventory/schema/declared.h"
#include "inventory/schema/formats.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace muster::inventory {

namespace {

constexpr int kMaxDisks = 256, kMaxRootDisks = 8, kMaxVolumeGib = 1'000'000, kMaxSectorBytes = 4096;

constexpr TextFormat kVolumeName{"a name of at most 32 lower-case letters, digits, '-' and '_'",
                                 "^[a-z0-9_][a-z0-9_-]{0,31}$", "scratch"};
constexpr TextFormat kMountPoint{"an absolute path, not / and not below /boot",
                                 "^/(?!boot(/|$))[A-Za-z0-9._/-]+$", "/scratch"};

ObjectSpec make_storageVolumeSpec() {
  return Table<StorageVolume>("storage-volume", "volume",
                              "A file system. One without a size fills its set; several, or one "
                              "with a size, are LVM volumes.")
      .required("name", &StorageVolume::name, text(kVolumeName), "Its name.")
      .required("mount", &StorageVolume::mount, text(kMountPoint), "Where it is mounted.")
      .optional("size_gib", &StorageVolume::size_gib, integer(0, kMaxVolumeGib),
                "Its size in GiB; 0, only for the last one: what is left.")
      .optional("filesystem", &StorageVolume::filesystem, choice({"xfs", "ext4"}),
                "What is made in it.")
      .printsAlways()
      .spec();
}
MUSTER_SPEC(storageVolumeSpec)

void checkSet(StorageSet& set, const Value& map, Reader& reader) {
  if (set.raid == RaidLevel::None && set.count > 1)
    reader.error(place(map, "count"),
                 fmt::format("{} disks without RAID are {} sets", set.count, set.count),
                 "write raid: raid0 or raid1, or a set for each disk");
  if (const int least = leastDisks(set.raid); set.count < least)
    reader.error(
        place(map, "raid"),
        fmt::format("RAID {} needs {} disks at least", raidNumber(set.raid).value_or(0), least),
        fmt::format("write count: {} or more", least));
  if (set.sector_bytes != 0 && set.sector_bytes != 512 && set.sector_bytes != kMaxSectorBytes)
    reader.error(place(map, "sector_bytes"),
                 fmt::format("disks have no sectors of {} bytes", set.sector_bytes),
                 "write 512 or 4096");
  const Value& volumes = place(map, "volumes");
  std::set<std::string> names;
  for (std::size_t i = 0; i < set.volumes.size() && i < volumes.items.size(); ++i) {
    if (set.volumes[i].size_gib == 0 && i + 1 < set.volumes.size())
      reader.error(
          volumes.items[i],
          fmt::format("volume {} takes all that is left, but others follow", set.volumes[i].name),
          "give it a size_gib, or put it last");
    if (!names.insert(set.volumes[i].name).second)
      reader.error(volumes.items[i], fmt::format("there are two volumes {}", set.volumes[i].name),
                   "rename one");
  }
}

ObjectSpec make_storageSetSpec() {
  return Table<StorageSet>("storage-set", "storage",
                           "Disks beside the system disk; divided, joined and mounted when the "
                           "node is imaged. What is as declared already keeps its data then, "
                           "unless it is encrypted. Anything else that its disks hold goes only "
                           "with `muster wipe NODE --data`.")
      .required("disks", &StorageSet::disks, text(kDisk),
                "Which disks: serial:…, wwn:…, smallest or size:LOW-HIGH. It must fit exactly "
                "`count` disks.")
      .optional("count", &StorageSet::count, integer(1, kMaxDisks), "How many disks.")
      .optional("raid", &StorageSet::raid,
                choice({"none", "raid0", "raid1", "raid5", "raid6", "raid10"}),
                "How they are joined (md).")
      .optional("encrypt", &StorageSet::encrypt, boolean(),
                "LUKS; the key is made on the node and lies on its system disk, so writing the "
                "system anew empties the set.")
      .optional("sector_bytes", &StorageSet::sector_bytes, integer(0, kMaxSectorBytes),
                "512 or 4096: NVMe namespaces with other sectors are formatted (`nvme format`) "
                "before the set is made. Absent: they stay as they are.")
      .required("volumes", &StorageSet::volumes, listOf(object(storageVolumeSpec), 1),
                "What is made of it.")
      .printsAlways({"count", "raid", "encrypt"})
      .check(checkSet)
      .spec();
}

void checkRoot(RootLayout& root, const Value& map, Reader& reader) {
  if (root.raid == RaidLevel::None && root.count > 1)
    reader.error(place(map, "count"), "several disks need RAID", "write raid: raid1 or raid0");
  if (root.raid != RaidLevel::None && root.count < 2)
    reader.error(place(map, "raid"), "RAID needs two disks at least", "write count: 2 or more");
  if (root.count == 1 && root.raid == RaidLevel::None && root.encrypt == RootKey::None &&
      root.lvm_gib == 0)
    reader.error(map, "this is the layout that a system disk has anyway",
                 "remove it, or write raid, encrypt or lvm_gib");
}

ObjectSpec make_rootLayoutSpec() {
  return Table<RootLayout>(
             "root-layout", "root",
             "How the system disk is made: md RAID, LUKS on it, an LVM volume on that; each where "
             "it is written. /boot is a partition of its own on each disk.")
      .optional("count", &RootLayout::count, integer(1, kMaxRootDisks),
                "How many disks the rule under `disk` must fit; of the same use, each with a boot "
                "loader.")
      .optional("raid", &RootLayout::raid, choice({"none", "raid0", "raid1"}),
                "How they are joined (md).")
      .optional("encrypt", &RootLayout::encrypt, choice({"none", "tpm", "keyfile"}),
                "LUKS. tpm: the key is sealed to this machine's TPM and its Secure Boot state (PCR "
                "7). keyfile: the key lies on /boot, so only destroying that partition protects.")
      .optional(
          "lvm_gib", &RootLayout::lvm_gib, integer(0, kMaxVolumeGib),
          "The root is an LVM volume of so many GiB, the rest of the group stays free. 0: no LVM.")
      .printsAlways()
      .check(checkRoot)
      .spec();
}

}  // namespace

MUSTER_SPEC(storageSetSpec)
MUSTER_SPEC(rootLayoutSpec)

}  // namespace muster::inventory
