// SPDX-License-Identifier: Apache-2.0
// The processors that nodes have, and what each calls its parts: one row an architecture.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace muster {

enum class Architecture { Amd64, Arm64 };

struct ArchitectureTraits {
  Architecture architecture;
  const char* name;              ///< Debian's, OCI's and the inventory's word
  const char* machine;           ///< for people, as elfMachineName says it
  const char* uname;             ///< what `uname -m` prints
  std::uint16_t elf_machine;     ///< e_machine of its programs
  std::uint16_t pe_machine;      ///< of its UEFI programs
  const char* library_folder;    ///< Debian's below lib/ and usr/lib/
  const char* system_loader;     ///< PT_INTERP of its programs with glibc
  const char* loader;            ///< the file name of that
  const char* efi_suffix;        ///< BOOTx64.EFI, grubx64.efi
  const char* removable_loader;  ///< what firmware starts of a disk by itself, below EFI/BOOT
  const char* grub_platform;     ///< `grub-install --target`
  const char* debian_kernel;     ///< the package that stands for the newest
  const char* serial_console;    ///< the first serial port, as the kernel calls it
};

/// Sources: System V ABI, processor supplements (e_machine, loaders); PE Format, Microsoft
/// (machine types); UEFI 2.10, 3.5.1.1 (removable media)
inline constexpr std::array<ArchitectureTraits, 2> kArchitectures{{
    {Architecture::Amd64, "amd64", "x86-64", "x86_64", 62, 0x8664, "x86_64-linux-gnu",
     "/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2", "x64", "BOOTX64.EFI", "x86_64-efi",
     "linux-image-amd64", "ttyS0"},
    {Architecture::Arm64, "arm64", "AArch64", "aarch64", 183, 0xaa64, "aarch64-linux-gnu",
     "/lib/ld-linux-aarch64.so.1", "ld-linux-aarch64.so.1", "aa64", "BOOTAA64.EFI", "arm64-efi",
     "linux-image-arm64", "ttyAMA0"},
}};

constexpr const ArchitectureTraits& traitsOf(Architecture architecture) {
  return kArchitectures[static_cast<std::size_t>(architecture)];
}

/// nullptr: no node of muster's has such a processor.
constexpr const ArchitectureTraits* architectureOfElf(std::uint16_t elf_machine) {
  for (const auto& traits : kArchitectures)
    if (traits.elf_machine == elf_machine) return &traits;
  return nullptr;
}

/// What this program was built for.
#if defined(__aarch64__)
inline constexpr Architecture kBuiltFor = Architecture::Arm64;
#else
inline constexpr Architecture kBuiltFor = Architecture::Amd64;
#endif

}  // namespace muster
