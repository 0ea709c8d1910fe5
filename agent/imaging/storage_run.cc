// SPDX-License-Identifier: Apache-2.0
// Carries a storage plan out with the tools of the RAM OS.
#include "agent/imaging/storage_plan.h"

#include "base/io/process.h"
#include "wire/partition_table.h"

#include <fmt/format.h>

namespace muster::agent {

namespace {

constexpr std::chrono::minutes kStepLimit{10};
constexpr const char* kData = "muster-data";
constexpr const char* kMaking = "muster-making";

}  // namespace

Result<void> runStorageTool(const StorageStep& step, const std::string& key) {
  io::Command command{.program = step.program, .args = step.args};
  command.stdin_text = step.needs_key ? key : step.stdin_text;
  command.timeout = kStepLimit;
  TRY_OK(io::runChecked(command));
  return {};
}

Result<void> runSteps(const std::vector<StorageStep>& steps,
                      const std::map<std::string, std::string>& keys, const StorageTool& tool,
                      const std::function<void(const std::string&)>& notify) {
  for (const StorageStep& step : steps) {
    notify(step.set.empty() ? step.what : fmt::format("disks of {}: {}", step.set, step.what));
    const auto key = keys.find(step.set);
    if (step.needs_key && (key == keys.end() || key->second.empty()))
      return fail(ErrorCode::Internal,
                  fmt::format("disks of {}: there is no key for them", step.set));
    auto done = tool(step, key == keys.end() ? std::string() : key->second);
    if (!done && !step.may_fail)
      return fail(
          std::move(done).error().within(fmt::format("disks of {}: {}", step.set, step.what)));
  }
  return {};
}

bool isHeld(const std::filesystem::path& root, const DiskInfo& disk) {
  const auto block = root / "sys/block" / disk.path.filename();
  std::error_code error;
  const auto held = [&error](const std::filesystem::path& folder) {
    return std::filesystem::exists(folder / "holders", error) &&
           !std::filesystem::is_empty(folder / "holders", error);
  };
  if (held(block)) return true;
  for (const auto& entry : std::filesystem::directory_iterator(block, error))
    if (entry.is_directory(error) && held(entry.path())) return true;
  return false;
}

void releaseDisk(const DiskInfo& disk) {
  if (!isHeld("/", disk)) return;
  (void)runStorageTool({"", "lvm", {"vgchange", "--activate", "n"}, "", true, false, ""}, {});
  (void)runStorageTool({"", "mdadm", {"--stop", "--scan"}, "", true, false, ""}, {});
}

FoundStorage findStorage(const std::vector<DiskInfo>& disks) {
  FoundStorage found;
  for (const DiskInfo& disk : disks) {
    const auto output =
        io::runChecked({.program = "sfdisk", .args = {"--json", disk.path.string()}});
    for (const wire::Partition& partition :
         wire::readPartitionTable(output.value_or("")).partitions) {
      if (partition.name == kData) found.finished.insert(partition.uuid);
      if (partition.name == kMaking) found.making.insert(partition.uuid);
    }
  }
  return found;
}

}  // namespace muster::agent
