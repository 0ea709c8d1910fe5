// SPDX-License-Identifier: Apache-2.0
// An AMDGPU code object, read as ROCm's loader does: ELF, and the metadata of its note. Source:
// LLVM's AMDGPU user guide, "ELF Code Object" and "Code Object V5 Metadata".
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::test {

struct KernelArgument {
  std::size_t offset = 0, size = 0;
};
struct KernelEntry {
  std::vector<KernelArgument> arguments;  ///< that the caller gives; hidden ones are the runtime's
  std::size_t argument_bytes = 0;         ///< of the whole segment
  unsigned max_threads = 0, shared_bytes = 0, wavefront = 0, spilled = 0;
};
struct CodeObject {
  unsigned machine = 0;  ///< EF_AMDGPU_MACH: which GPU
  std::map<std::string, KernelEntry> kernels;
};
inline constexpr unsigned kMachGfx90a = 0x3f, kMachGfx942 = 0x4c, kMachGfx950 = 0x4f;

/// Throws std::runtime_error when it is no such file.
CodeObject readCodeObject(std::string_view bytes);
/// The size of the ELF file that begins here.
std::size_t elfSize(const void* image);

}  // namespace muster::test
