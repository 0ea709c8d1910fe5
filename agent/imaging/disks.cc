// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/disks.h"

#include "agent/imaging/writer.h"
#include "base/io/files.h"
#include "base/io/process.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "wire/disk_rule.h"
#include "wire/partition_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace muster::agent {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::uint64_t kSysfsSectorBytes = 512;
constexpr std::size_t kMaxAttributeBytes = 4096;
constexpr std::array<std::string_view, 9> kNotDisks{"loop", "ram", "zram", "sr",      "fd",
                                                    "dm-",  "md",  "nbd",  "mtdblock"};
constexpr std::array<std::string_view, 3> kLabels{"muster-bios", "muster-esp", "muster-root"};
constexpr std::string_view kDataLabel = "muster-data";  ///< of a data disk that is finished
constexpr std::string_view kMakingLabel =
    "muster-making";  ///< of a data disk (storage_plan.h) that is not finished
constexpr std::chrono::seconds kToolLimit{60};

std::string trimmed(std::string text) {
  const auto keep = [](unsigned char c) { return c > ' ' && c < 127; };
  text.erase(text.begin(), std::find_if(text.begin(), text.end(), keep));
  text.erase(std::find_if(text.rbegin(), text.rend(), keep).base(), text.end());
  return text;
}

std::string attribute(const fs::path& file) {
  auto text = io::readFile(file, kMaxAttributeBytes);
  return text ? trimmed(std::move(*text)) : std::string();
}

std::string firstOf(const fs::path& block, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (auto value = attribute(block / name); !value.empty()) return value;
  return {};
}

/// virtio and NVMe have a file; SCSI and SATA tell it in VPD page 0x80: four bytes of header, then
/// text.
std::string serialOf(const fs::path& block) {
  if (auto serial = firstOf(block, {"serial", "device/serial"}); !serial.empty()) return serial;
  const auto page = io::readFile(block / "device/vpd_pg80", kMaxAttributeBytes);
  return page && page->size() > 4 ? trimmed(page->substr(4)) : std::string();
}

Result<std::string> tool(std::string program, std::vector<std::string> args,
                         std::string stdin_text = {}) {
  io::Command command{.program = std::move(program), .args = std::move(args)};
  command.stdin_text = std::move(stdin_text);
  command.timeout = kToolLimit;
  return io::runChecked(command);
}

std::string listed(const std::vector<const DiskInfo*>& disks) {
  if (disks.empty()) return "this machine has no disk that could be written";
  std::vector<std::string> names;
  for (const DiskInfo* disk : disks) names.push_back(disk->str());
  return fmt::format("there are: {}", fmt::join(names, ", "));
}

/// Names of the partitions and their file systems, for people.
std::string describePartitions(const fs::path& device,
                               const std::vector<wire::Partition>& partitions) {
  std::vector<std::string> parts;
  for (const wire::Partition& partition : partitions)
    parts.push_back(partition.name.empty()
                        ? partition.node
                        : fmt::format("{} \"{}\"", partition.node, partition.name));
  if (parts.empty()) return fmt::format("an empty partition table on {}", device.string());
  return fmt::format("partitions {}", fmt::join(parts, ", "));
}

}  // namespace

std::string DiskInfo::str() const {
  return fmt::format("{} ({}{}, {:.1f} GiB)", path.string(),
                     serial.empty() ? (wwn.empty() ? "no serial" : "wwn ") : "serial ",
                     serial.empty() ? wwn : serial, static_cast<double>(size_bytes) / (1u << 30));
}

std::vector<DiskInfo> listDisks(const fs::path& root) {
  std::vector<DiskInfo> disks;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root / "sys/block", error)) {
    const std::string name = entry.path().filename();
    if (std::any_of(kNotDisks.begin(), kNotDisks.end(),
                    [&name](std::string_view prefix) { return name.starts_with(prefix); }))
      continue;
    DiskInfo disk;
    disk.path = root / "dev" / name;
    disk.serial = serialOf(entry.path());
    disk.wwn = firstOf(entry.path(), {"wwid", "device/wwid"});
    disk.size_bytes =
        std::strtoull(attribute(entry.path() / "size").c_str(), nullptr, 10) * kSysfsSectorBytes;
    disk.sector_bytes = std::atoi(attribute(entry.path() / "queue/logical_block_size").c_str());
    disk.read_only = attribute(entry.path() / "ro") == "1";
    disk.removable = attribute(entry.path() / "removable") == "1";
    if (disk.size_bytes > 0 && !disk.read_only && !disk.removable) disks.push_back(std::move(disk));
  }
  std::sort(disks.begin(), disks.end(),
            [](const DiskInfo& a, const DiskInfo& b) { return a.path < b.path; });
  return disks;
}

Result<DiskInfo> chooseDisk(const std::vector<DiskInfo>& disks, std::string_view text) {
  TRY(rule, wire::DiskRule::parse(text));
  const auto fits = rule.fitting(disks);
  if (fits.size() == 1) return *fits.front();
  if (fits.empty())
    return fail(ErrorCode::NotFound, fmt::format("no disk fits \"{}\"; {}", text,
                                                 listed(wire::DiskRule().fitting(disks))));
  if (rule.any())
    return fail(ErrorCode::Conflict,
                "the profile does not say which disk, and there are several; write disk: "
                "\"serial:…\" into it; " +
                    listed(fits));
  return fail(ErrorCode::Conflict, fmt::format("several disks fit \"{}\"; {}", text, listed(fits)));
}

fs::path partitionNode(const fs::path& disk, int number) {
  const std::string name = disk.string();
  const bool ends_in_digit = !name.empty() && std::isdigit(static_cast<unsigned char>(name.back()));
  return name + (ends_in_digit ? "p" : "") + std::to_string(number);
}

std::optional<FoundLayout> readLayout(std::string_view sfdisk_json) {
  const wire::PartitionTable table = wire::readPartitionTable(sfdisk_json);
  if (table.label != "gpt" || table.partitions.size() != kLabels.size()) return std::nullopt;
  const wire::Partition& root = table.partitions[kRootPartition - 1];
  for (std::size_t i = 0; i < kLabels.size(); ++i)
    if (const auto& name = table.partitions[i].name;
        name != kLabels[i] && !(&table.partitions[i] == &root && name == kWritingLabel))
      return std::nullopt;
  FoundLayout found{table.partitions[kEspPartition - 1].uuid, root.uuid,
                    root.name == kLabels.back()};
  if (found.root_partuuid.empty() || found.esp_partuuid.empty()) return std::nullopt;
  return found;
}

Result<std::string> partitionUuid(const fs::path& disk, int number) {
  TRY(output, tool("sfdisk", {"--json", disk.string()}));
  for (const wire::Partition& partition : wire::readPartitionTable(output).partitions)
    if (partition.number == number && !partition.uuid.empty()) return partition.uuid;
  return fail(ErrorCode::Internal, fmt::format("{} has no partition {}", disk.string(), number));
}

Result<Layout> divideDisk(const fs::path& disk) {
  Layout layout;
  layout.esp = partitionNode(disk, kEspPartition);
  layout.root = partitionNode(disk, kRootPartition);
  const auto before = tool("sfdisk", {"--json", disk.string()});
  if (before && readLayout(*before)) {
    TRY_OK(tool("sfdisk", {"--part-label", disk.string(), std::to_string(kRootPartition),
                           std::string(kWritingLabel)}));
    layout.kept = true;
  } else {
    const std::string script = fmt::format(
        "label: gpt\n"
        "size=1MiB, type=21686148-6449-6E6F-744E-656564454649, name=\"{}\"\n"
        "size=128MiB, type=C12A7328-F81F-11D2-BA4B-00A0C93EC93B, name=\"{}\"\n"
        "type=4F68BCE3-E8CD-4DB1-96E7-FBCAF984B709, name=\"{}\"\n",
        kLabels[0], kLabels[1], kWritingLabel);
    TRY_OK(tool("sfdisk",
                {"--wipe", "always", "--wipe-partitions", "always", "--quiet", disk.string()},
                script));
  }
  (void)tool("udevadm",
             {"settle",
              "--timeout=30"});  // the kernel has made the nodes; udev may still be looking at them
  TRY(after, tool("sfdisk", {"--json", disk.string()}));
  const auto found = readLayout(after);
  if (!found)
    return fail(ErrorCode::Internal,
                fmt::format("{} does not have the partitions that were just made", disk.string()));
  layout.esp_partuuid = found->esp_partuuid;
  layout.root_partuuid = found->root_partuuid;
  return layout;
}

Result<void> markComplete(const fs::path& disk, int root_partition) {
  TRY_OK(tool("sfdisk", {"--part-label", disk.string(), std::to_string(root_partition),
                         std::string(kLabels.back())}));
  TRY_OK(tool("sync", {}));
  return {};
}

Result<DiskContent> describeDiskContent(const fs::path& device) {
  TRY(signatures, tool("wipefs", {"--no-act", "--json", device.string()}));
  // No signature, no output. An answer of another shape says nothing, least of all "empty".
  json list = json::array();
  if (signatures.find_first_not_of(" \n") != std::string::npos) {
    const json found = jsonOrNone(signatures, kToolJson);
    const auto listed = found.is_object() ? found.find("signatures") : found.end();
    if (!found.is_object() || listed == found.end() || !listed->is_array())
      return fail(ErrorCode::Internal,
                  fmt::format("wipefs did not report what is on {}", device.string()));
    list = *listed;
  }
  const DiskContent nothing{wire::DiskUse::Empty, "none"};
  if (list.empty()) return nothing;

  if (const auto output = tool("sfdisk", {"--json", device.string()})) {
    const wire::PartitionTable table = wire::readPartitionTable(*output);
    const auto named = [&table](std::string_view name) {
      return std::any_of(table.partitions.begin(), table.partitions.end(),
                         [name](const wire::Partition& one) { return one.name == name; });
    };
    if (table.label == "dos" && table.id == fmt::format("0x{:08x}", kWritingDiskId)) return nothing;
    if (named(kWritingLabel) || (table.partitions.size() == 1 && named(kMakingLabel)))
      return nothing;
    if (named(kLabels.front()) && named(kLabels.back()))
      return DiskContent{wire::DiskUse::System, "a system installed by muster"};
    if (!table.label.empty())
      return DiskContent{named(kDataLabel) ? wire::DiskUse::DataSet : wire::DiskUse::Other,
                         describePartitions(device, table.partitions)};
  }
  std::vector<std::string> words;
  for (const json& signature : list) {
    const std::string label = textOf(signature, "label");
    words.push_back(label.empty() ? textOf(signature, "type")
                                  : fmt::format("{} \"{}\"", textOf(signature, "type"), label));
  }
  return DiskContent{wire::DiskUse::Other,
                     fmt::format("{} on {}", fmt::join(words, ", "), device.string())};
}

}  // namespace muster::agent
