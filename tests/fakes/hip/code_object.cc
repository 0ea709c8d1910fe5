// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/hip/code_object.h"

#include <nlohmann/json.hpp>

#include <elf.h>

#include <cstring>
#include <stdexcept>

namespace muster::test {
namespace {

constexpr unsigned kAmdGpu = 224, kMetadataNote = 32, kMachMask = 0xff;

template <class T>
T at(std::string_view bytes, std::size_t offset) {
  if (offset + sizeof(T) > bytes.size()) throw std::runtime_error("the ELF file is cut");
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::size_t padded(std::size_t size) { return (size + 3) / 4 * 4; }

nlohmann::json metadataOf(std::string_view bytes) {
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    const auto part = at<Elf64_Phdr>(bytes, header.e_phoff + i * sizeof(Elf64_Phdr));
    if (part.p_type != PT_NOTE) continue;
    for (std::size_t place = part.p_offset; place < part.p_offset + part.p_filesz;) {
      const auto note = at<Elf64_Nhdr>(bytes, place);
      const auto name = place + sizeof note, content = name + padded(note.n_namesz);
      if (note.n_type == kMetadataNote && bytes.substr(name, 6) == "AMDGPU")
        return nlohmann::json::from_msgpack(bytes.substr(content, note.n_descsz));
      place = content + padded(note.n_descsz);
    }
  }
  throw std::runtime_error("the code object has no metadata");
}

}  // namespace

CodeObject readCodeObject(std::string_view bytes) {
  const auto header = at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_machine != kAmdGpu)
    throw std::runtime_error("this is no code object of AMDGPU");
  CodeObject code;
  code.machine = header.e_flags & kMachMask;
  for (const auto& kernel : metadataOf(bytes).at("amdhsa.kernels")) {
    KernelEntry entry;
    entry.argument_bytes = kernel.at(".kernarg_segment_size");
    entry.max_threads = kernel.at(".max_flat_workgroup_size");
    entry.shared_bytes = kernel.at(".group_segment_fixed_size");
    entry.wavefront = kernel.at(".wavefront_size");
    entry.spilled = kernel.value(".vgpr_spill_count", 0u);
    for (const auto& argument : kernel.at(".args"))
      if (!argument.at(".value_kind").get<std::string>().starts_with("hidden_"))
        entry.arguments.push_back({argument.at(".offset"), argument.at(".size")});
    code.kernels[kernel.at(".name")] = std::move(entry);
  }
  return code;
}

std::size_t elfSize(const void* image) {
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  return header.e_shoff + std::size_t{header.e_shnum} * header.e_shentsize;
}

}  // namespace muster::test
