// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/root_plan.h"

#include "base/io/crypto.h"
#include "wire/disk_rule.h"
#include "wire/partition_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::agent {

namespace {

using wire::RaidLevel;

constexpr std::uint64_t kGib = 1ull << 30;
constexpr const char* kBiosType = "21686148-6449-6E6F-744E-656564454649";
constexpr const char* kEspType = "C12A7328-F81F-11D2-BA4B-00A0C93EC93B";
constexpr const char* kRaidType = "A19D880F-05FC-4D3B-A006-743F0F84911E";
constexpr const char* kLinuxType = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";
constexpr const char* kBootArray = "/dev/md/muster-boot";
constexpr const char* kRootArray = "/dev/md/muster-root";
constexpr const char* kOpened = "muster-root-crypt";  ///< the name of what LUKS opens
constexpr const char* kGroup = "muster-root";         ///< of LVM

std::string listed(const std::vector<const DiskInfo*>& disks) {
  std::vector<std::string> names;
  for (const DiskInfo* disk : disks) names.push_back(disk->str());
  return disks.empty() ? "there is none" : fmt::format("there are: {}", fmt::join(names, ", "));
}

Result<void> checkSpec(const wire::RootLayout& spec) {
  const auto wrong = [](const char* why) {
    return fail(ErrorCode::InvalidInput, fmt::format("system disk: {}", why));
  };
  if (spec.count < 1) return wrong("it is of one disk at least");
  if (spec.raid == RaidLevel::None && spec.count > 1)
    return wrong("several disks need RAID: 0 or 1");
  const bool simple = spec.raid == RaidLevel::Raid0 || spec.raid == RaidLevel::Raid1;
  if (spec.raid != RaidLevel::None && (!simple || spec.count < 2))
    return wrong("RAID is 0 or 1, over two disks at least");
  return {};
}

Result<std::vector<DiskInfo>> chooseDisks(const std::vector<DiskInfo>& disks, std::string_view text,
                                          int count) {
  TRY(rule, wire::DiskRule::parse(text));
  auto fits = rule.fitting(disks);
  if (fits.empty())
    return fail(ErrorCode::NotFound, fmt::format("system disk: no disk fits \"{}\"; {}", text,
                                                 listed(wire::DiskRule().fitting(disks))));
  if (fits.size() != static_cast<std::size_t>(count))
    return fail(ErrorCode::Conflict,
                fmt::format("system disk: \"{}\" fits {} disks, {} are declared; {}", text,
                            fits.size(), count, listed(fits)));
  std::sort(fits.begin(), fits.end(), [](const DiskInfo* a, const DiskInfo* b) {
    return std::tie(a->serial, a->wwn, a->path) < std::tie(b->serial, b->wwn, b->path);
  });
  std::vector<DiskInfo> chosen;
  for (const DiskInfo* disk : fits) chosen.push_back(*disk);
  return chosen;
}

Result<void> checkRoom(const std::vector<DiskInfo>& disks, const wire::RootLayout& spec,
                       std::uint64_t image_bytes) {
  std::uint64_t least = disks.front().size_bytes;
  for (const DiskInfo& disk : disks) least = std::min(least, disk.size_bytes);
  const std::uint64_t each = least > kComposedBesideBytes ? least - kComposedBesideBytes : 0;
  const std::uint64_t room = spec.raid == RaidLevel::Raid0 ? each * disks.size() : each;
  const std::uint64_t lvm_bytes = static_cast<std::uint64_t>(spec.lvm_gib) * kGib;
  const std::uint64_t wanted = std::max(image_bytes, lvm_bytes);
  if (wanted > room)
    return fail(ErrorCode::InvalidInput,
                fmt::format("system disk: {} MiB are needed, its disks give {} MiB", wanted >> 20,
                            room >> 20));
  if (spec.lvm_gib > 0 && lvm_bytes < image_bytes)
    return fail(ErrorCode::InvalidInput,
                fmt::format("system disk: the image needs {} MiB, its volume has {} GiB",
                            image_bytes >> 20, spec.lvm_gib));
  return {};
}

class RootPlanner {
 public:
  RootPlanner(RootPlan& plan, const wire::RootLayout& spec, const std::string& node)
      : plan_(plan), spec_(spec) {
    identity_ =
        fmt::format("{} root raid{} luks{} lvm{}", node, raidNumber(spec.raid).value_or(kNoRaid),
                    static_cast<int>(spec.encrypt), spec.lvm_gib);
    for (const DiskInfo& disk : plan.disks)
      identity_ += fmt::format(" {}/{}", disk.serial, disk.wwn);
  }

  void run() {
    releaseDisk(plan_.steps);
    divide();
    plan_.boot_uuid = uuid("boot");
    plan_.boot = arrayOrPartition(kBootArray, kComposedBootPartition, RaidLevel::Raid1, "1.0");
    std::string device = arrayOrPartition(kRootArray, kComposedRootPartition, spec_.raid, "1.2");
    if (spec_.encrypt != wire::RootKey::None) device = encrypt(device);
    if (spec_.lvm_gib > 0) device = volume(device);
    plan_.root = device;
    // initramfs-tools brings up LVM by this very name.
    plan_.root_argument = "root=" + device;
    step("file system for /boot", "mkfs.ext4",
         {"-F", "-q", "-L", "muster-boot", "-U", plan_.boot_uuid, plan_.boot.string()});
    plan_.key = spec_.encrypt;
    releaseDisk(plan_.closing);
  }

 private:
  std::string uuid(std::string_view what) const {
    return storageUuid(fmt::format("{} {}", identity_, what));
  }

  void step(std::string what, std::string program, std::vector<std::string> args,
            std::string stdin_text = {}) {
    plan_.steps.push_back({std::move(what), std::move(program), std::move(args),
                           std::move(stdin_text), false, false, std::string(kRootSet)});
  }

  /// Before: udev may have assembled what older systems left. After: the array is clean, and the
  /// disk has all.
  void releaseDisk(std::vector<StorageStep>& steps) const {
    const auto add = [&steps](const char* program, std::vector<std::string> args) {
      steps.push_back({"nothing holds the disks", program, std::move(args), "", true, false,
                       std::string(kRootSet)});
    };
    add("lvm", {"vgchange", "--activate", "n"});
    add("cryptsetup", {"close", kOpened});
    add("mdadm", {"--stop", "--scan"});
  }

  void divide() {
    const char* part = spec_.raid != RaidLevel::None ? kRaidType : kLinuxType;
    for (const DiskInfo& disk : plan_.disks)
      step(fmt::format("partition table on {}", disk.str()), "sfdisk",
           {"--wipe", "always", "--wipe-partitions", "always", "--quiet", disk.path.string()},
           fmt::format("label: gpt\nsize=1MiB, type={}, name=\"muster-bios\"\nsize=128MiB, "
                       "type={}, name=\"muster-esp\"\nsize=1GiB, type={}, "
                       "name=\"muster-boot\"\ntype={}, name=\"{}\"\n",
                       kBiosType, kEspType, part, part, kWritingLabel));
    step("the new partitions appear", "udevadm", {"settle", "--timeout=30"});
  }

  std::string arrayOrPartition(const std::string& array, int partition, RaidLevel raid,
                               const char* metadata) {
    if (plan_.disks.size() == 1) return partitionNode(plan_.disks.front().path, partition);
    const std::string name = array.substr(array.rfind('/') + 1);
    const int level = raidNumber(raid).value_or(kNoRaid);
    std::vector<std::string> args{"--create",
                                  array,
                                  "--run",
                                  fmt::format("--metadata={}", metadata),
                                  "--homehost=any",
                                  "--name=" + name,
                                  "--uuid=" + mdUuid(uuid(name)),
                                  fmt::format("--level={}", level),
                                  fmt::format("--raid-devices={}", plan_.disks.size())};
    for (const DiskInfo& disk : plan_.disks) args.push_back(partitionNode(disk.path, partition));
    step(fmt::format("RAID {} of {} disks for {}", level, plan_.disks.size(), name), "mdadm",
         std::move(args));
    addForgetContent(plan_.steps, std::string(kRootSet));
    plan_.mdadm.push_back(
        fmt::format("ARRAY {} metadata={} UUID={}", array, metadata, mdUuid(uuid(name))));
    return array;
  }

  std::string encrypt(const std::string& device) {
    const std::string id = uuid("luks");
    // The least derivation: a key of 48 random bytes is not guessed, and the machine opens it at
    // every start.
    step("encryption", "cryptsetup",
         {"luksFormat", "--batch-mode", "--type", "luks2", "--pbkdf", "pbkdf2",
          "--pbkdf-force-iterations", "1000", "--uuid", id, "--key-file", "-", device});
    plan_.steps.back().needs_key = true;
    step("encryption", "cryptsetup",
         {"open", "--type", "luks2", "--key-file", "-", device, kOpened});
    plan_.steps.back().needs_key = true;
    const bool tpm = spec_.encrypt == wire::RootKey::Tpm;
    plan_.crypttab.push_back(fmt::format("{} UUID={} {} luks,initramfs{}", kOpened, id,
                                         tpm ? "none" : "/etc/muster/keys/root.key",
                                         tpm ? ",keyscript=/usr/lib/muster/unlock-root" : ""));
    return fmt::format("/dev/mapper/{}", kOpened);
  }

  std::string volume(const std::string& device) {
    step("volume group", "lvm", {"pvcreate", "-ff", "--yes", device});
    step("volume group", "lvm", {"vgcreate", "--yes", kGroup, device});
    step("volume root", "lvm",
         {"lvcreate", "--yes", "--wipesignatures", "y", "--name", "root", "--size",
          fmt::format("{}g", spec_.lvm_gib), kGroup});
    return "/dev/mapper/muster--root-root";
  }

  RootPlan& plan_;
  const wire::RootLayout& spec_;
  std::string identity_;
};

}  // namespace

Result<RootPlan> planRoot(const std::vector<DiskInfo>& disks, std::string_view rule,
                          const wire::RootLayout& spec, std::uint64_t image_bytes,
                          const std::string& node) {
  TRY_OK(checkSpec(spec));
  RootPlan plan;
  TRY(chosen, chooseDisks(disks, rule, spec.count));
  plan.disks = chosen;
  TRY_OK(checkRoom(plan.disks, spec, image_bytes));
  RootPlanner(plan, spec, node).run();
  return plan;
}

bool dividedForRoot(std::string_view sfdisk_json) {
  const wire::PartitionTable table = wire::readPartitionTable(sfdisk_json);
  const auto named = [&table](std::size_t at, std::string_view name) {
    return table.partitions[at].name == name;
  };
  return table.label == "gpt" && table.partitions.size() == kComposedRootPartition &&
         named(0, "muster-bios") && named(1, "muster-esp") && named(2, "muster-boot") &&
         (named(3, kWritingLabel) || named(3, "muster-root"));
}

}  // namespace muster::agent
