// SPDX-License-Identifier: Apache-2.0
// Firmware files of the lab ("muster-fw/1"): one header line, then the payload that the virtual BMC
// hashes before it writes.
//
//   muster-fw/1 {"component":"BMC","sha256":"<of the payload>","version":"2.1.0"}\n<payload>
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace muster::lab::vbmc {

inline constexpr std::size_t kFirmwarePayloadBytes = 1u << 20;
inline constexpr std::size_t kMaxFirmwareHeaderBytes = 4096;

struct FirmwareHeader {
  std::string component;  ///< of a tray: several, as "A+B"
  std::string version;
  std::string payload_sha256;
};

/// The same bytes each time: the payload is a SHA-256 chain started from component and version.
std::string makeFirmware(std::string_view component, std::string_view version,
                         std::size_t payload_bytes = kFirmwarePayloadBytes);

/// Header of an image. Errors: Corrupt (not a muster-fw/1 file)
Result<FirmwareHeader> readFirmwareHeader(std::string_view image);

/// Checks the payload against the header. Errors: Corrupt with both digests
Result<void> verifyFirmware(std::string_view image);

}  // namespace muster::lab::vbmc
