// SPDX-License-Identifier: Apache-2.0
// The header of a PLDM firmware update package (DSP0267 1.0 to 1.3): read and checked before
// anything is uploaded. Pure.
#pragma once

#include "base/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace muster::firmware {

struct PldmComponent {
  std::uint16_t classification = 0, identifier = 0;
  std::uint32_t offset_bytes = 0, size_bytes = 0;
  std::string version;
};

struct PldmDevice {
  std::vector<std::string>
      descriptors;                      ///< "iana:1647", "pci:10de", "uuid:…"; others as "TYPE:hex"
  std::string version;                  ///< of the set of images for this device
  std::vector<std::size_t> components;  ///< indices into PldmPackage::components
};

struct PldmPackage {
  int format_revision = 0;
  std::size_t header_bytes = 0;
  std::string version;
  std::vector<PldmDevice> devices;
  std::vector<PldmComponent> components;

  bool isFor(std::string_view device) const;
  /// Whether the package, a set in it, or a component of it bears this version.
  bool bears(std::string_view version) const;
  /// All versions in it, for a message.
  std::string versions() const;
};

inline constexpr std::size_t kMaxPldmHeaderBytes = 65'535;

/// Whether a file begins as a PLDM package does.
bool looksLikePldm(std::string_view begin);

/// `begin`: the file's first kMaxPldmHeaderBytes, or all of it. `file_bytes`: its whole size.
/// Errors: Corrupt (what is wrong: cut off, checksum, a length that does not fit, an image beyond
/// the file's end)
Result<PldmPackage> parsePldm(std::string_view begin, std::uintmax_t file_bytes);

/// The checksum over everything behind the header, which format 4 has. Errors: Corrupt
Result<void> checkPldmPayload(std::string_view file);

}  // namespace muster::firmware
