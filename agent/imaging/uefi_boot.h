// SPDX-License-Identifier: Apache-2.0
// The boot order that a machine's UEFI firmware keeps, after a system was installed: that system
// first, the network next, systems that somebody left on other disks switched off. Read from the
// firmware's variables, written by efibootmgr. docs/adr/0281
// Source: UEFI 2.10, 3.1 (boot manager, EFI_LOAD_OPTION), 10.3 (device paths); Linux efivarfs.rst
#pragma once

#include "agent/imaging/disks.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::agent {

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

/// Nullopt: this machine did not start by UEFI. Errors: Corrupt (BootOrder), Internal
Result<std::optional<UefiBoot>> readUefiBoot(const std::filesystem::path& variables);

/// An EFI system partition that holds muster's boot loader.
struct InstalledEsp {
  std::filesystem::path disk;
  int partition = kEspPartition;
  std::string partuuid;  ///< small letters
};

/// Where the firmware's variables are.
inline constexpr const char* kUefiVariables = "/sys/firmware/efi/efivars";

/// What was changed, a line each; empty: nothing had to be. A second run changes nothing.
/// Errors: Internal (efibootmgr's own words), Unavailable (the firmware did not keep what it took)
Result<std::vector<std::string>> mendUefiBoot(
    const std::vector<InstalledEsp>& installed,
    const std::filesystem::path& variables = kUefiVariables);

}  // namespace muster::agent
