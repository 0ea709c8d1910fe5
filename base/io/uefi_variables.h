// SPDX-License-Identifier: Apache-2.0
// Seam: the boot options that a machine's UEFI firmware keeps, as Linux shows its variables. Read
// only. The texts in them are foreign.
// Source: UEFI 2.10, 3.1 (boot manager, EFI_LOAD_OPTION), 10.3 (device paths); Linux efivarfs.rst
#pragma once

#include "base/result.h"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::io {

/// A Boot#### variable.
struct UefiOption {
  enum class Kind { Network, System, Other };  ///< System: a program on a partition
  bool active = false;                         ///< the firmware skips others
  Kind kind = Kind::Other;
  std::string name;      ///< as whoever made it called it: foreign text
  std::string partuuid;  ///< of a System, small letters; "" where its disk has no GPT
  std::string file;      ///< of a System: "\EFI\BOOT\BOOTX64.EFI"
};

/// Of the variable's content without its attributes. Nullopt: it is no load option.
std::optional<UefiOption> parseLoadOption(std::string_view bytes);

struct UefiBoot {
  std::map<std::uint16_t, UefiOption>
      options;  ///< by number; one that is no load option is an Other without a name
  std::vector<std::uint16_t> order;
};

/// Nullopt: this machine did not start by UEFI. Errors: Corrupt (BootOrder), Denied, Internal
Result<std::optional<UefiBoot>> readUefiBoot(const std::filesystem::path& variables);

/// "Boot0007"
std::string uefiOptionName(std::uint16_t number);

/// Where Linux shows them.
inline constexpr const char* kUefiVariables = "/sys/firmware/efi/efivars";

}  // namespace muster::io
