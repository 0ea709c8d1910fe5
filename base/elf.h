// SPDX-License-Identifier: Apache-2.0
// What an ELF file says of itself: its machine, its loader, the libraries it needs, and the
// versions that it defines. Pure; reads foreign files, so every offset and count is bounded.
#pragma once

#include "base/result.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster {

struct ElfFile {
  bool is_64_bit = false;
  std::uint16_t machine = 0;                  ///< e_machine
  std::string interpreter;                    ///< the loader that the kernel starts; may be empty
  std::size_t interpreter_offset_bytes = 0;   ///< where its text stands in the file
  std::size_t interpreter_length_bytes = 0;   ///< with the zero at its end
  std::vector<std::string> needed;            ///< DT_NEEDED, in order
  std::vector<std::string> search_folders;    ///< DT_RPATH and DT_RUNPATH, divided at ":"
  std::vector<std::string> defined_versions;  ///< "GLIBC_2.36"
};

/// Shape:  content of a whole file → ElfFile; of a file that is not 64 bits little-endian only its
///         machine
/// Errors: InvalidInput (no ELF file), Corrupt (cut short, or its tables contradict each other)
/// Source: System V ABI, "Object Files" and "Program Loading"; LSB Core, "Symbol Versioning"
Result<ElfFile> parseElf(std::string_view content);

/// "x86-64", "AArch64"; of a machine that is not in the table its number.
std::string elfMachineName(std::uint16_t machine);

/// A release of the GNU C library: 2.36.
struct GlibcVersion {
  int major = 0, minor = 0;
  auto operator<=>(const GlibcVersion&) const = default;
  std::string str() const;
};

/// The release of a libc.so.6: the newest GLIBC_ version that it defines. Nothing where it defines
/// none (musl, another library).
std::optional<GlibcVersion> glibcVersionOf(const ElfFile& libc);

}  // namespace muster
