// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/storage_plan.h"

#include "agent/imaging/erase.h"
#include "base/io/crypto.h"
#include "wire/disk_rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

namespace muster::agent {

namespace {

using wire::RaidLevel;

constexpr std::uint64_t kGib = 1ull << 30;
constexpr std::uint64_t kOverheadBytes =
    64ull << 20;  ///< partition table, md, LUKS and LVM headers together, generously
constexpr const char* kLinuxRaidType = "A19D880F-05FC-4D3B-A006-743F0F84911E";
constexpr const char* kLinuxDataType = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";
constexpr const char* kMaking = "muster-making";
constexpr const char* kData = "muster-data";

/// Everything that, when it changes, makes another set.
std::string identityOf(const std::string& node, const wire::StorageSet& set,
                       const std::vector<const DiskInfo*>& disks) {
  std::string words = fmt::format("{} {} raid{} luks{}", node, set.name,
                                  raidNumber(set.raid).value_or(kNoRaid), set.encrypt);
  for (const auto& volume : set.volumes)
    words += fmt::format(" {}:{}:{}", volume.name, volume.size_gib, toString(volume.filesystem));
  for (const DiskInfo* disk : disks) words += fmt::format(" {}/{}", disk->serial, disk->wwn);
  return words;
}

std::unexpected<Error> refuse(ErrorCode code, const wire::StorageSet& set, const std::string& why) {
  return fail(code, fmt::format("disks of {}: {}", set.name, why));
}

std::string listed(const std::vector<const DiskInfo*>& disks) {
  std::vector<std::string> names;
  for (const DiskInfo* disk : disks) names.push_back(disk->str());
  return disks.empty() ? "there is none" : fmt::format("there are: {}", fmt::join(names, ", "));
}

/// What md makes of n disks of one size.
struct Level {
  RaidLevel raid;
  std::uint64_t (*room)(std::uint64_t disks);  ///< of so many disks
};
constexpr Level kLevels[] = {{RaidLevel::None, [](std::uint64_t) { return std::uint64_t{1}; }},
                             {RaidLevel::Raid0, [](std::uint64_t n) { return n; }},
                             {RaidLevel::Raid1, [](std::uint64_t) { return std::uint64_t{1}; }},
                             {RaidLevel::Raid5, [](std::uint64_t n) { return n - 1; }},
                             {RaidLevel::Raid6, [](std::uint64_t n) { return n - 2; }},
                             {RaidLevel::Raid10, [](std::uint64_t n) { return n / 2; }}};

const Level& levelOf(RaidLevel raid) { return *std::ranges::find(kLevels, raid, &Level::raid); }

Result<void> checkSet(const wire::StorageSet& set) {
  const auto wrong = [&set](const std::string& why) {
    return refuse(ErrorCode::InvalidInput, set, why);
  };
  if (set.count < 1 || set.volumes.empty())
    return wrong("a set has one disk and one volume at least");
  if (set.raid == RaidLevel::None && set.count > 1)
    return wrong("several disks need raid: 0, 1, 5, 6 or 10");
  if (const int least = leastDisks(set.raid); set.count < least)
    return wrong(fmt::format("RAID {} is over {} disks at least",
                             raidNumber(set.raid).value_or(kNoRaid), least));
  for (std::size_t i = 0; i < set.volumes.size(); ++i) {
    const wire::StorageVolume& volume = set.volumes[i];
    if (volume.mount.size() < 2 || volume.mount[0] != '/' ||
        volume.mount.find_first_of(" \t\n\\") != std::string::npos ||
        volume.mount.starts_with("/boot"))
      return wrong(fmt::format("\"{}\" is no place for it", volume.mount));
    if (volume.size_gib == 0 && i + 1 != set.volumes.size())
      return wrong("only the last volume takes what is left");
  }
  return {};
}

/// The disks of a set, in the order of their serials. Errors: NotFound, Conflict
Result<std::vector<const DiskInfo*>> chooseFor(
    const wire::StorageSet& set, const std::vector<DiskInfo>& disks,
    const std::vector<DiskInfo>& system_disks,
    std::map<std::filesystem::path, std::string>& taken) {
  auto rule = wire::DiskRule::parse(set.disks);
  if (!rule) return refuse(ErrorCode::InvalidInput, set, rule.error().text());
  if (rule->any()) return refuse(ErrorCode::InvalidInput, set, "a rule is needed");
  auto fits = rule->fitting(disks);
  if (fits.empty())
    return refuse(ErrorCode::NotFound, set, fmt::format("no disk fits \"{}\"", set.disks));
  if (fits.size() != static_cast<std::size_t>(set.count))
    return refuse(ErrorCode::Conflict, set,
                  fmt::format("\"{}\" fits {} disks, {} are declared; {}", set.disks, fits.size(),
                              set.count, listed(fits)));
  for (const DiskInfo* disk : fits) {
    if (std::any_of(system_disks.begin(), system_disks.end(),
                    [disk](const DiskInfo& system) { return system.path == disk->path; }))
      return refuse(ErrorCode::Conflict, set, fmt::format("{} is the system disk", disk->str()));
    if (disk->serial.empty() && disk->wwn.empty())
      return refuse(ErrorCode::Conflict, set,
                    fmt::format("{} has neither serial nor WWN to know it by", disk->str()));
    if (const auto [other, is_new] = taken.emplace(disk->path, set.name); !is_new)
      return refuse(ErrorCode::Conflict, set,
                    fmt::format("{} belongs to {} already", disk->str(), other->second));
  }
  std::sort(fits.begin(), fits.end(), [](const DiskInfo* a, const DiskInfo* b) {
    return std::tie(a->serial, a->wwn) < std::tie(b->serial, b->wwn);
  });
  return fits;
}

Result<void> checkRoom(const wire::StorageSet& set, const std::vector<const DiskInfo*>& disks) {
  std::uint64_t least = disks.front()->size_bytes, wanted = 0;
  for (const DiskInfo* disk : disks) least = std::min(least, disk->size_bytes);
  const std::uint64_t each = least > kOverheadBytes ? least - kOverheadBytes : 0;
  const std::uint64_t room = each * levelOf(set.raid).room(disks.size());
  for (const auto& volume : set.volumes)
    wanted += static_cast<std::uint64_t>(std::max(volume.size_gib, 1)) * kGib;
  if (wanted > room)
    return refuse(
        ErrorCode::InvalidInput, set,
        fmt::format("its volumes need {} GiB, its disks give {} GiB", wanted / kGib, room / kGib));
  return {};
}

/// Only NVMe namespaces can be given other sectors, and some controllers format all of theirs at
/// once.
Result<void> checkSectors(const wire::StorageSet& set, const std::vector<const DiskInfo*>& chosen,
                          const std::vector<DiskInfo>& disks) {
  if (set.sector_bytes == 0) return {};
  if (set.sector_bytes != 512 && set.sector_bytes != 4096)
    return refuse(
        ErrorCode::InvalidInput, set,
        fmt::format("sectors of {} bytes do not exist; write 512 or 4096", set.sector_bytes));
  for (const DiskInfo* disk : chosen) {
    if (disk->sector_bytes == set.sector_bytes) continue;
    const auto controller = nvmeController(disk->path);
    if (controller.empty())
      return refuse(ErrorCode::Conflict, set,
                    fmt::format("{} has sectors of {} bytes and is no NVMe disk, so it keeps them; "
                                "remove sector_bytes",
                                disk->str(), disk->sector_bytes));
    for (const DiskInfo& other : disks)
      if (nvmeController(other.path) == controller &&
          std::none_of(chosen.begin(), chosen.end(),
                       [&other](const DiskInfo* one) { return one->path == other.path; }))
        return refuse(ErrorCode::Conflict, set,
                      fmt::format("formatting {} may empty {} of the same controller too; put both "
                                  "into one set, or remove sector_bytes",
                                  disk->str(), other.str()));
  }
  return {};
}

/// Writes the steps of one set.
class SetPlanner {
 public:
  SetPlanner(const wire::StorageSet& set, std::vector<const DiskInfo*> disks,
             const std::string& node, StoragePlan& plan)
      : set_(set),
        disks_(std::move(disks)),
        identity_(identityOf(node, set, disks_)),
        plan_(plan) {}

  void run(const FoundStorage& found) {
    const bool as_declared = std::all_of(disks_.begin(), disks_.end(), [&](const DiskInfo* disk) {
      return found.finished.contains(partUuid(*disk));
    });
    const bool sectors = std::all_of(disks_.begin(), disks_.end(),
                                     [&](const DiskInfo* disk) { return hasItsSectors(*disk); });
    const bool keeps = !set_.encrypt && sectors;
    if (keeps && (as_declared || lacksOnlyLabels(found))) {
      plan_.kept.push_back(set_.name);
      for (const DiskInfo* disk : disks_)
        if (!found.finished.contains(partUuid(*disk))) finish(*disk);
    } else {
      make();
      // The key of an encrypted set goes with the system disk, as declared; so the permission for
      // that covers what is left of it.
      for (const DiskInfo* disk : disks_)
        if (!(set_.encrypt &&
              (found.finished.contains(partUuid(*disk)) || found.making.contains(partUuid(*disk)))))
          plan_.guarded.push_back({set_.name, *disk});
    }
    describe();
  }

 private:
  bool hasItsSectors(const DiskInfo& disk) const {
    return set_.sector_bytes == 0 || set_.sector_bytes == disk.sector_bytes;
  }
  /// The labels are written last, in the order of the disks: one that has its own tells that
  /// everything else is made.
  bool lacksOnlyLabels(const FoundStorage& found) const {
    bool labelled = true;
    for (const DiskInfo* disk : disks_) {
      const bool has = found.finished.contains(partUuid(*disk));
      if ((has && !labelled) || (!has && !found.making.contains(partUuid(*disk)))) return false;
      labelled = has;
    }
    return found.finished.contains(partUuid(*disks_.front()));
  }
  std::string partUuid(const DiskInfo& disk) const {
    return storageUuid(identity_ + " partition " + disk.serial + "/" + disk.wwn);
  }
  std::string arrayUuid() const { return mdUuid(storageUuid(identity_ + " array")); }
  std::string luksUuid() const { return storageUuid(identity_ + " luks"); }
  std::string fileSystemUuid(const wire::StorageVolume& volume) const {
    return storageUuid(identity_ + " volume " + volume.name);
  }
  std::string array() const { return "/dev/md/" + set_.name; }
  std::string group() const { return "muster-" + set_.name; }

  void step(std::string what, std::string program, std::vector<std::string> args,
            std::string stdin_text = {}) {
    plan_.steps.push_back({std::move(what), std::move(program), std::move(args),
                           std::move(stdin_text), false, false, set_.name});
  }
  void keyStep(std::string what, std::vector<std::string> args) {
    step(std::move(what), "cryptsetup", std::move(args));
    plan_.steps.back().needs_key = true;
  }

  void make() {
    for (const DiskInfo* disk : disks_) plan_.wiped.push_back(*disk);
    for (const DiskInfo* disk : disks_)
      if (!hasItsSectors(*disk)) formatSectors(*disk);
    divide();
    std::string device = partitionNode(disks_.front()->path, 1);
    if (set_.raid != RaidLevel::None) device = assemble();
    if (set_.encrypt) device = encrypt(device);
    if (set_.lvm()) split(device);
    for (const auto& volume : set_.volumes)
      format(volume, set_.lvm() ? fmt::format("/dev/{}/{}", group(), volume.name) : device);
    for (const DiskInfo* disk : disks_) finish(*disk);
  }

  void finish(const DiskInfo& disk) {
    step(fmt::format("{} is finished", disk.str()), "sfdisk",
         {"--part-label", disk.path.string(), "1", kData});
  }

  /// The program finds the format by its block size, one without metadata. What the kernel says of
  /// it afterwards counts.
  void formatSectors(const DiskInfo& disk) {
    const auto size = std::to_string(set_.sector_bytes);
    step(fmt::format("{} gets sectors of {} bytes", disk.str(), size), "nvme",
         {"format", disk.path.string(), "--block-size=" + size, "--force"});
    step("the kernel sees the new sectors", "udevadm", {"settle", "--timeout=30"});
    step(fmt::format("{} has sectors of {} bytes", disk.str(), size), "grep",
         {"-qx", size,
          fmt::format("/sys/block/{}/queue/logical_block_size", disk.path.filename().string())});
  }

  void divide() {
    for (const DiskInfo* disk : disks_)
      step(fmt::format("partition table on {}", disk->str()), "sfdisk",
           {"--wipe", "always", "--wipe-partitions", "always", "--quiet", disk->path.string()},
           fmt::format("label: gpt\ntype={}, name=\"{}\", uuid={}\n",
                       set_.raid != RaidLevel::None ? kLinuxRaidType : kLinuxDataType, kMaking,
                       partUuid(*disk)));
    step("the new partitions appear", "udevadm", {"settle", "--timeout=30"});
  }

  std::string assemble() {
    std::vector<std::string> args{
        "--create",
        array(),
        "--run",
        "--metadata=1.2",
        "--homehost=any",
        "--name=" + set_.name,
        "--uuid=" + arrayUuid(),
        fmt::format("--level={}", raidNumber(set_.raid).value_or(kNoRaid)),
        fmt::format("--raid-devices={}", disks_.size())};
    for (const DiskInfo* disk : disks_) args.push_back(partitionNode(disk->path, 1));
    step(fmt::format("RAID {} of {} disks", raidNumber(set_.raid).value_or(kNoRaid), disks_.size()),
         "mdadm", std::move(args));
    addForgetContent(plan_.steps, set_.name);
    return array();
  }

  std::string encrypt(const std::string& device) {
    keyStep("encryption", {"luksFormat", "--batch-mode", "--type", "luks2", "--uuid", luksUuid(),
                           "--key-file", "-", device});
    keyStep("encryption", {"open", "--type", "luks2", "--key-file", "-", device, group()});
    plan_.keys.push_back(set_.name);
    return "/dev/mapper/" + group();
  }

  void split(const std::string& device) {
    step("volume group", "lvm", {"pvcreate", "-ff", "--yes", device});
    step("volume group", "lvm", {"vgcreate", "--yes", group(), device});
    for (const auto& volume : set_.volumes) {
      std::vector<std::string> args{"lvcreate", "--yes",  "--wipesignatures",
                                    "y",        "--name", volume.name};
      if (volume.size_gib > 0)
        args.insert(args.end(), {"--size", fmt::format("{}g", volume.size_gib)});
      else
        args.insert(args.end(), {"--extents", "100%FREE"});
      args.push_back(group());
      step("volume " + volume.name, "lvm", std::move(args));
    }
  }

  void format(const wire::StorageVolume& volume, const std::string& device) {
    const std::string uuid = fileSystemUuid(volume);
    if (volume.filesystem == wire::FileSystem::Xfs)
      step("file system for " + volume.mount, "mkfs.xfs",
           {"-f", "-q", "-m", "uuid=" + uuid, device});
    else
      step("file system for " + volume.mount, "mkfs.ext4", {"-F", "-q", "-U", uuid, device});
  }

  /// What the installed system must know; the same whether the set was made or kept.
  void describe() {
    if (set_.raid != RaidLevel::None)
      plan_.mdadm.push_back(fmt::format("ARRAY {} metadata=1.2 UUID={}", array(), arrayUuid()));
    if (set_.encrypt)
      plan_.crypttab.push_back(fmt::format("{} UUID={} /etc/muster/keys/{}.key luks,nofail",
                                           group(), luksUuid(), set_.name));
    for (const auto& volume : set_.volumes)
      plan_.fstab.push_back(
          fmt::format("UUID={} {} {} noatime,nofail,x-systemd.device-timeout=60 0 2",
                      fileSystemUuid(volume), volume.mount, toString(volume.filesystem)));
  }

  const wire::StorageSet& set_;
  std::vector<const DiskInfo*> disks_;
  std::string identity_;
  StoragePlan& plan_;
};

Result<void> checkUnique(const std::vector<wire::StorageSet>& sets) {
  std::set<std::string> names, mounts;
  for (const auto& set : sets) {
    if (!names.insert(set.name).second)
      return refuse(ErrorCode::InvalidInput, set, "there are two of this name");
    std::set<std::string> volumes;
    for (const auto& volume : set.volumes) {
      if (!mounts.insert(volume.mount).second)
        return refuse(ErrorCode::InvalidInput, set,
                      fmt::format("{} is mounted twice", volume.mount));
      if (!volumes.insert(volume.name).second)
        return refuse(ErrorCode::InvalidInput, set,
                      fmt::format("there are two volumes {}", volume.name));
    }
  }
  return {};
}

/// udev may have assembled what older systems left, whatever is declared now; nothing may hold the
/// disks while they are divided.
std::vector<StorageStep> lettingGo(const std::vector<wire::StorageSet>& sets) {
  std::vector<StorageStep> steps;
  const auto add = [&steps](const char* program, std::vector<std::string> args) {
    steps.push_back({"nothing holds the disks", program, std::move(args), "", true, false, ""});
  };
  add("lvm", {"vgchange", "--activate", "n"});
  for (const auto& set : sets)
    if (set.encrypt) add("cryptsetup", {"close", "muster-" + set.name});
  add("mdadm", {"--stop", "--scan"});
  return steps;
}

}  // namespace

std::string storageUuid(const std::string& words) {
  std::string hex = io::sha256Hex("muster-storage " + words).substr(0, 32);
  hex[12] = '5';
  hex[16] = "89ab"[hex[16] % 4];
  return fmt::format("{}-{}-{}-{}-{}", hex.substr(0, 8), hex.substr(8, 4), hex.substr(12, 4),
                     hex.substr(16, 4), hex.substr(20));
}

std::string mdUuid(std::string uuid) {
  std::erase(uuid, '-');
  return fmt::format("{}:{}:{}:{}", uuid.substr(0, 8), uuid.substr(8, 8), uuid.substr(16, 8),
                     uuid.substr(24));
}

void addForgetContent(std::vector<StorageStep>& steps, const std::string& set) {
  steps.push_back(
      {"the new array appears", "udevadm", {"settle", "--timeout=30"}, "", false, false, set});
  steps.push_back({"nothing of before is in use",
                   "lvm",
                   {"vgchange", "--activate", "n"},
                   "",
                   true,
                   false,
                   set});
}

Result<StoragePlan> planStorage(const std::vector<DiskInfo>& disks,
                                const std::vector<DiskInfo>& system_disks,
                                const std::vector<wire::StorageSet>& sets, const std::string& node,
                                const FoundStorage& found) {
  TRY_OK(checkUnique(sets));
  StoragePlan plan;
  std::map<std::filesystem::path, std::string> taken;
  for (const auto& set : sets) {
    TRY_OK(checkSet(set));
    TRY(chosen, chooseFor(set, disks, system_disks, taken));
    TRY_OK(checkRoom(set, chosen));
    TRY_OK(checkSectors(set, chosen, disks));
    SetPlanner(set, chosen, node, plan).run(found);
  }
  if (!plan.wiped.empty()) {
    const auto first = lettingGo(sets);
    plan.steps.insert(plan.steps.begin(), first.begin(), first.end());
  }
  return plan;
}

}  // namespace muster::agent
