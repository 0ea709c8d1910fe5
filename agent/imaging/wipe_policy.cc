// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/wipe_policy.h"

#include "wire/task_reason.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace muster::agent {

namespace {

constexpr std::string_view kSystemGuard =
    "it is not overwritten, because the plan did not say that this node may be wiped";
constexpr std::string_view kDataGuard =
    "they are not overwritten, because a permission to wipe the system disk does not cover data";

/// "/dev/sdb (serial X, 4.0 GiB) holds …"; empty when there is nothing to lose.
Result<std::string> heldBy(const DiskInfo& disk, const ContentOf& content_of) {
  TRY(content, content_of(disk));
  return content.use == wire::DiskUse::Empty ? std::string()
                                             : fmt::format("{} holds {}", disk.str(), content.text);
}

bool isGuarded(const StoragePlan& storage, const DiskInfo& disk) {
  return std::any_of(
      storage.guarded.begin(), storage.guarded.end(),
      [&disk](const StoragePlan::DataDisk& one) { return one.disk.path == disk.path; });
}

}  // namespace

Result<void> guardDisks(const std::vector<DiskInfo>& system_disks, const StoragePlan& storage,
                        WipePolicy policy, const ContentOf& content_of) {
  std::vector<std::string> held, held_data;
  const auto look = [&](const DiskInfo& disk, const std::string& of,
                        std::vector<std::string>& list) -> Result<void> {
    TRY(words, heldBy(disk, content_of));
    if (!words.empty()) list.push_back(of + words);
    return {};
  };
  for (const DiskInfo& disk : system_disks) TRY_OK(look(disk, "", held));
  for (const DiskInfo& disk : storage.wiped)
    if (!isGuarded(storage, disk)) TRY_OK(look(disk, "", held));
  for (const auto& [set, disk] : storage.guarded)
    TRY_OK(look(disk, fmt::format("disks of {}: ", set), held_data));

  std::vector<std::string> refused;
  const bool system_denied = !held.empty() && !policy.system;
  const bool data_denied = !held_data.empty() && !policy.data;
  if (!system_denied && !data_denied) return {};
  if (system_denied) refused.push_back(fmt::format("{}; {}", fmt::join(held, ", "), kSystemGuard));
  if (data_denied) refused.push_back(fmt::format("{}; {}", fmt::join(held_data, ", "), kDataGuard));
  Error denied(ErrorCode::Denied, fmt::format("{}", fmt::join(refused, "; ")));
  if (system_denied) denied = std::move(denied).because(wire::TaskReason::SystemWipeDenied);
  if (data_denied) denied = std::move(denied).because(wire::TaskReason::DataWipeDenied);
  return fail(std::move(denied));
}

}  // namespace muster::agent
