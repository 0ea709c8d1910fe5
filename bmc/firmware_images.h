// SPDX-License-Identifier: Apache-2.0
// The firmware images that are being uploaded: each in memory once, however many BMCs take it, and
// only for so long.
#pragma once

#include "bmc/arbiter.h"
#include "bmc/bmc.h"

#include <map>
#include <memory>

namespace muster::bmc {

inline constexpr std::uintmax_t kMaxFirmwareBytes = 1u << 30;
inline constexpr std::uintmax_t kMaxSignatureBytes = 1u << 20;

/// Bytes whose SHA-256 was compared with the baseline's; they are what is sent, whatever becomes of
/// the file.
using FirmwareImage = std::shared_ptr<const std::string>;

/// Blocking. Errors: Corrupt (digest differs, with both), NotFound, InvalidInput (empty, larger
/// than kMaxFirmwareBytes)
Result<FirmwareImage> readFirmwareImage(const FirmwareUpdate& update);

class FirmwareImages {
 public:
  explicit FirmwareImages(Workers& workers) : workers_(workers) {}
  /// Errors: as readFirmwareImage
  Async<FirmwareImage> get(FirmwareUpdate update);
  /// A small file that lies beside an image: a vendor's signature. Null: there is none.
  Async<FirmwareImage> beside(std::filesystem::path file);

 private:
  Workers& workers_;
  AsyncSemaphore one_{1};  ///< whoever comes second finds what the first has read
  std::map<std::string, std::weak_ptr<const std::string>> by_sha256_;
};

}  // namespace muster::bmc
