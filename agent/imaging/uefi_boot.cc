// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/uefi_boot.h"

#include "base/architecture.h"
#include "base/io/process.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <linux/magic.h>
#include <sys/vfs.h>

#include <algorithm>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

using io::UefiBoot;
using io::UefiOption;
using io::uefiOptionName;

constexpr std::string_view kLabel = "muster";
const std::string kLoader = std::string("\\EFI\\BOOT\\") + traitsOf(kBuiltFor).removable_loader;
constexpr std::chrono::minutes kToolLimit{1};
constexpr std::string_view kAdvice =
    "; `muster bmc boot-order NODE --first disk` tells the BMC instead, or clear the boot options "
    "in the firmware's setup and image the node again";

Result<void> efibootmgr(const fs::path& variables, std::vector<std::string> args) {
  args.insert(args.begin(), "--quiet");
  io::Command command{.program = "efibootmgr", .args = std::move(args)};
  command.env["EFIVARFS_PATH"] = variables.string() + "/";
  command.env["LIBEFIVAR_OPS"] = "efivarfs";
  command.timeout = kToolLimit;
  auto done = io::runChecked(command);
  if (!done) return fail(Error(done.error().code(), done.error().str() + std::string(kAdvice)));
  return {};
}

/// Of whichever installation.
bool isMusters(const UefiOption& option) {
  return option.kind == UefiOption::Kind::System && option.name == kLabel && option.file == kLoader;
}

bool isOurs(const UefiOption& option, const InstalledEsp& esp) {
  return isMusters(option) && option.partuuid == esp.partuuid;
}

bool isAnyOf(const UefiOption& option, const std::vector<InstalledEsp>& installed) {
  return std::ranges::any_of(installed,
                             [&](const InstalledEsp& esp) { return isOurs(option, esp); });
}

/// A GRUB or Windows loader that was on this partition before it was made anew.
bool isLeftOver(const UefiOption& option, const std::vector<InstalledEsp>& installed) {
  return option.kind == UefiOption::Kind::System &&
         std::ranges::any_of(installed, [&](const InstalledEsp& esp) {
           return option.partuuid == esp.partuuid && !isOurs(option, esp);
         });
}

/// An earlier installation's, whose partition is on no disk any more: each installation makes its
/// partitions anew, and firmware has room for some hundred options only. Nothing is concluded where
/// the partitions are not to be seen.
bool isGone(const UefiOption& option, const std::vector<InstalledEsp>& installed,
            const fs::path& partitions) {
  std::error_code error;
  const auto present = [&](const std::string& partuuid) {
    return fs::symlink_status(partitions / partuuid, error).type() != fs::file_type::not_found;
  };
  return isMusters(option) && !option.partuuid.empty() && !present(option.partuuid) &&
         std::ranges::all_of(installed,
                             [&](const InstalledEsp& esp) { return present(esp.partuuid); });
}

/// What was installed now, by disk; the network; the rest in its order; foreign systems.
std::vector<std::uint16_t> wantedOrder(const UefiBoot& boot,
                                       const std::vector<InstalledEsp>& installed) {
  std::vector<std::uint16_t> ours, network, rest, foreign;
  for (const auto& esp : installed)
    for (const auto& [number, option] : boot.options)
      if (isOurs(option, esp)) ours.push_back(number);
  for (const auto number : boot.order) {
    const auto found = boot.options.find(number);
    if (found == boot.options.end() || std::ranges::find(ours, number) != ours.end()) continue;
    const auto kind = found->second.kind;
    (kind == UefiOption::Kind::Network  ? network
     : kind == UefiOption::Kind::System ? foreign
                                        : rest)
        .push_back(number);
  }
  // Nothing keeps a firmware from listing a number twice.
  for (const auto& part : {network, rest, foreign})
    for (const auto number : part)
      if (std::ranges::find(ours, number) == ours.end()) ours.push_back(number);
  return ours;
}

std::string orderText(const std::vector<std::uint16_t>& order) {
  std::vector<std::string> numbers;
  for (const auto number : order) numbers.push_back(fmt::format("{:04X}", number));
  return fmt::format("{}", fmt::join(numbers, ","));
}

Result<UefiBoot> readAgain(const fs::path& variables) {
  TRY(boot, io::readUefiBoot(variables));
  if (!boot) return fail(ErrorCode::Internal, "the firmware's variables are gone");
  return std::move(*boot);
}

}  // namespace

bool runsFromMemory() {
  struct statfs root{};
  return ::statfs("/", &root) == 0 && (root.f_type == TMPFS_MAGIC || root.f_type == RAMFS_MAGIC);
}

Result<std::vector<std::string>> mendUefiBoot(const std::vector<InstalledEsp>& installed,
                                              const UefiPlaces& places) {
  const auto& variables = places.variables;
  std::vector<std::string> changes;
  TRY(found, io::readUefiBoot(variables));
  if (!found) return changes;
  for (const auto& [number, option] : found->options) {
    const auto hex = fmt::format("{:04X}", number);
    const bool ours = isAnyOf(option, installed);
    if (ours && !option.active) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--active"}));
      changes.push_back(uefiOptionName(number) + " of this system is switched on again");
    } else if (isLeftOver(option, installed)) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--delete-bootnum"}));
      changes.push_back(fmt::format("{} ({}), whose files were overwritten, is deleted",
                                    uefiOptionName(number), printable(option.name)));
    } else if (!ours && isGone(option, installed, places.partitions)) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--delete-bootnum"}));
      changes.push_back(uefiOptionName(number) +
                        " of an earlier installation, whose partition is gone, is deleted");
    } else if (!ours && option.kind == UefiOption::Kind::System && option.active) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--inactive"}));
      changes.push_back(fmt::format("{} ({}), a system on another disk, is switched off",
                                    uefiOptionName(number), printable(option.name)));
    }
  }
  for (const auto& esp : installed) {
    const bool there = std::ranges::any_of(
        found->options, [&](const auto& entry) { return isOurs(entry.second, esp); });
    if (there) continue;
    TRY_OK(efibootmgr(variables, {"--create-only", "--disk", esp.disk.string(), "--part",
                                  std::to_string(esp.partition), "--label", std::string(kLabel),
                                  "--loader", kLoader}));
    changes.push_back(fmt::format("the system on {} has an option of its own", esp.disk.string()));
  }
  TRY(now, readAgain(variables));
  const auto wanted = wantedOrder(now, installed);
  if (wanted != now.order) {
    TRY_OK(efibootmgr(variables, {"--bootorder", orderText(wanted)}));
    changes.push_back("the boot order is " + orderText(wanted));
  }
  TRY(after, readAgain(variables));
  if (after.order != wanted)
    return fail(ErrorCode::Unavailable,
                fmt::format("the firmware was given the boot order {} but keeps {}{}",
                            orderText(wanted), orderText(after.order), kAdvice));
  const auto active = std::ranges::all_of(installed, [&](const InstalledEsp& esp) {
    return std::ranges::any_of(after.options, [&](const auto& entry) {
      return isOurs(entry.second, esp) && entry.second.active;
    });
  });
  if (!active)
    return fail(
        ErrorCode::Unavailable,
        fmt::format("the firmware did not keep the option of the installed system{}", kAdvice));
  for (const auto& [number, option] : after.options)
    if (option.kind == UefiOption::Kind::System && option.active && !isAnyOf(option, installed))
      return fail(ErrorCode::Unavailable,
                  fmt::format("{} ({}), a system on another disk, was switched off, but the "
                              "firmware keeps it active{}",
                              uefiOptionName(number), printable(option.name), kAdvice));
  return changes;
}

}  // namespace muster::agent
