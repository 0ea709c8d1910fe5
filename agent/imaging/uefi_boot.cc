// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/uefi_boot.h"

#include "base/io/files.h"
#include "base/io/process.h"
#include "base/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kGlobalVariable = "-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::string_view kLabel = "muster";
constexpr const char* kLoader = "\\EFI\\BOOT\\BOOTX64.EFI";
constexpr std::size_t kAttributeBytes = 4;  ///< in front of each variable's content
constexpr std::size_t kMaxVariableBytes = 65'536;
constexpr std::size_t kMaxOptions = 1'024;
constexpr std::uint32_t kActive = 1;  ///< LOAD_OPTION_ACTIVE
constexpr std::chrono::minutes kToolLimit{1};

enum NodeType : std::uint8_t { kMessaging = 3, kMedia = 4, kEnd = 0x7f };
constexpr std::uint8_t kMac = 11, kUri = 24, kHardDrive = 1, kFile = 4;
constexpr std::size_t kNodeHead = 4, kHardDriveBytes = 42, kSignatureAt = 24, kSignatureTypeAt = 41;
constexpr char kGuidSignature = 2;

std::uint16_t word(std::string_view bytes, std::size_t at) {
  return static_cast<std::uint16_t>(static_cast<unsigned char>(bytes[at]) |
                                    static_cast<unsigned char>(bytes[at + 1]) << 8);
}

/// UCS-2 until its NUL or the end; what is no ASCII becomes '?': it is for people's eyes only.
std::string narrow(std::string_view bytes) {
  std::string out;
  for (std::size_t at = 0; at + 1 < bytes.size(); at += 2) {
    const auto letter = word(bytes, at);
    if (letter == 0) break;
    out += letter < 0x80 ? static_cast<char>(letter) : '?';
  }
  return out;
}

/// The first three parts of a GUID lie there with their bytes turned round.
std::string guid(std::string_view bytes) {
  constexpr std::array<int, 16> kPlaces = {3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15};
  std::string out;
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += fmt::format("{:02x}",
                       static_cast<unsigned char>(bytes[static_cast<std::size_t>(kPlaces[i])]));
  }
  return out;
}

std::string optionName(std::uint16_t number) { return fmt::format("Boot{:04X}", number); }

Result<std::string> variable(const fs::path& variables, const std::string& name) {
  TRY(whole, io::readFile(variables / (name + std::string(kGlobalVariable)), kMaxVariableBytes));
  if (whole.size() < kAttributeBytes)
    return fail(ErrorCode::Corrupt, fmt::format("the firmware's variable {} is cut", name));
  return whole.substr(kAttributeBytes);
}

Result<void> efibootmgr(const fs::path& variables, std::vector<std::string> args) {
  args.insert(args.begin(), "--quiet");
  io::Command command{.program = "efibootmgr", .args = std::move(args)};
  command.env["EFIVARFS_PATH"] = variables.string() + "/";
  command.env["LIBEFIVAR_OPS"] = "efivarfs";
  command.timeout = kToolLimit;
  TRY_OK(io::runChecked(command));
  return {};
}

bool isOurs(const UefiOption& option, const InstalledEsp& esp) {
  return option.kind == UefiOption::Kind::System && option.partuuid == esp.partuuid &&
         option.name == kLabel && option.file == kLoader;
}

/// A GRUB or Windows loader that was on this partition before it was made anew.
bool isLeftOver(const UefiOption& option, const std::vector<InstalledEsp>& installed) {
  return option.kind == UefiOption::Kind::System &&
         std::ranges::any_of(installed, [&](const InstalledEsp& esp) {
           return option.partuuid == esp.partuuid && !isOurs(option, esp);
         });
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
  // efibootmgr 17 leaves numbers twice when it deletes an option.
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
  TRY(boot, readUefiBoot(variables));
  if (!boot) return fail(ErrorCode::Internal, "the firmware's variables are gone");
  return std::move(*boot);
}

}  // namespace

std::optional<UefiOption> parseLoadOption(std::string_view bytes) {
  constexpr std::size_t kHead = 6;
  if (bytes.size() < kHead) return std::nullopt;
  UefiOption option;
  option.active = ((word(bytes, 0) | static_cast<std::uint32_t>(word(bytes, 2)) << 16) & kActive);
  const std::size_t path_bytes = word(bytes, 4);
  auto rest = bytes.substr(kHead);
  option.name = narrow(rest);
  std::size_t name_end = 0;
  while (name_end + 1 < rest.size() && word(rest, name_end) != 0) name_end += 2;
  if (name_end + 2 > rest.size()) return std::nullopt;
  rest.remove_prefix(name_end + 2);
  if (path_bytes > rest.size()) return std::nullopt;
  auto path = rest.substr(0, path_bytes);
  bool on_drive = false;
  while (path.size() >= kNodeHead) {
    const auto type = static_cast<std::uint8_t>(path[0] & 0x7f),
               subtype = static_cast<std::uint8_t>(path[1]);
    const std::size_t length = word(path, 2);
    if (length < kNodeHead || length > path.size()) return std::nullopt;
    if (type == kEnd) break;
    const auto node = path.substr(0, length);
    if (type == kMessaging && (subtype == kMac || subtype == kUri))
      option.kind = UefiOption::Kind::Network;
    if (type == kMedia && subtype == kHardDrive && length >= kHardDriveBytes) {
      on_drive = true;
      if (node[kSignatureTypeAt] == kGuidSignature)
        option.partuuid = guid(node.substr(kSignatureAt, 16));
    }
    if (type == kMedia && subtype == kFile) option.file += narrow(node.substr(kNodeHead));
    path.remove_prefix(length);
  }
  if (on_drive) option.kind = UefiOption::Kind::System;
  return option;
}

Result<std::optional<UefiBoot>> readUefiBoot(const fs::path& variables) {
  std::error_code error;
  if (!fs::is_directory(variables, error) || fs::is_empty(variables, error))
    return std::optional<UefiBoot>();
  UefiBoot boot;
  for (const auto& file : fs::directory_iterator(variables, error)) {
    const auto name = file.path().filename().string();
    if (!name.starts_with("Boot") || name.size() != 8 + kGlobalVariable.size() ||
        !name.ends_with(kGlobalVariable))
      continue;
    std::uint16_t number = 0;
    const auto [end, code] = std::from_chars(name.data() + 4, name.data() + 8, number, 16);
    if (code != std::errc() || end != name.data() + 8 || boot.options.size() >= kMaxOptions)
      continue;
    const auto content = variable(variables, name.substr(0, 8));
    if (!content) continue;
    boot.options[number] = parseLoadOption(*content).value_or(UefiOption());
  }
  if (error)
    return fail(ErrorCode::Internal,
                fmt::format("cannot read {}: {}", variables.string(), error.message()));
  if (!fs::exists(variables / ("BootOrder" + std::string(kGlobalVariable)), error))
    return std::optional(std::move(boot));
  TRY(order, variable(variables, "BootOrder"));
  if (order.size() % 2 != 0)
    return fail(ErrorCode::Corrupt, "the firmware's BootOrder has half a number at its end");
  for (std::size_t at = 0; at < order.size(); at += 2) boot.order.push_back(word(order, at));
  return std::optional(std::move(boot));
}

Result<std::vector<std::string>> mendUefiBoot(const std::vector<InstalledEsp>& installed,
                                              const fs::path& variables) {
  std::vector<std::string> changes;
  TRY(found, readUefiBoot(variables));
  if (!found) return changes;
  for (const auto& [number, option] : found->options) {
    const auto hex = fmt::format("{:04X}", number);
    const bool ours = std::ranges::any_of(
        installed, [&, &candidate = option](const auto& esp) { return isOurs(candidate, esp); });
    if (ours && !option.active) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--active"}));
      changes.push_back(optionName(number) + " of this system is switched on again");
    } else if (isLeftOver(option, installed)) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--delete-bootnum"}));
      changes.push_back(fmt::format("{} ({}), whose files were overwritten, is deleted",
                                    optionName(number), printable(option.name)));
    } else if (!ours && option.kind == UefiOption::Kind::System && option.active) {
      TRY_OK(efibootmgr(variables, {"--bootnum", hex, "--inactive"}));
      changes.push_back(fmt::format("{} ({}), a system on another disk, is switched off",
                                    optionName(number), printable(option.name)));
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
  const auto kept = std::ranges::all_of(installed, [&](const InstalledEsp& esp) {
    return std::ranges::any_of(after.options, [&](const auto& entry) {
      return isOurs(entry.second, esp) && entry.second.active;
    });
  });
  if (after.order != wanted || !kept)
    return fail(ErrorCode::Unavailable,
                fmt::format("the firmware was given the boot order {} but keeps {}",
                            orderText(wanted), orderText(after.order)));
  return changes;
}

}  // namespace muster::agent
