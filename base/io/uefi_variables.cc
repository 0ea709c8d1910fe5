// SPDX-License-Identifier: Apache-2.0
#include "base/io/uefi_variables.h"

#include "base/io/files.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

namespace muster::io {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kGlobalVariable = "-8be4df61-93ca-11d2-aa0d-00e098032b8c";
constexpr std::size_t kAttributeBytes = 4;  ///< in front of each variable's content
constexpr std::size_t kMaxVariableBytes = 65'536;
constexpr std::size_t kMaxOptions = 1'024;
constexpr std::uint32_t kActive = 1;  ///< LOAD_OPTION_ACTIVE

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

Result<std::string> variable(const fs::path& variables, const std::string& name) {
  TRY(whole, readFile(variables / (name + std::string(kGlobalVariable)), kMaxVariableBytes));
  if (whole.size() < kAttributeBytes)
    return fail(ErrorCode::Corrupt, fmt::format("the firmware's variable {} is cut", name));
  return whole.substr(kAttributeBytes);
}

}  // namespace

std::string uefiOptionName(std::uint16_t number) { return fmt::format("Boot{:04X}", number); }

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
    if (code != std::errc() || end != name.data() + 8) continue;
    if (boot.options.size() >= kMaxOptions)
      return fail(ErrorCode::Corrupt,
                  fmt::format("the firmware has more than {} boot options", kMaxOptions));
    const auto content = variable(variables, name.substr(0, 8));
    if (!content && content.error().code() != ErrorCode::Corrupt) return fail(content.error());
    boot.options[number] =
        content ? parseLoadOption(*content).value_or(UefiOption()) : UefiOption();
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

}  // namespace muster::io
