// The body of a MultipartHttpPush upload: parameters and the firmware file, hashed where it lies in the body.
#pragma once

#include "bmc/bmc.h"
#include "bmc/json_view.h"

namespace muster::bmc {

inline constexpr std::uintmax_t kMaxFirmwareBytes = 1u << 30;

struct MultipartBody {
  std::string content_type;
  std::string body;
  std::size_t file_bytes = 0;
};

/// Reads the file into the body and compares the SHA-256 of exactly those bytes. Blocking.
/// Errors: Corrupt (digest differs, with both), NotFound, InvalidInput (empty, larger than kMaxFirmwareBytes)
Result<MultipartBody> multipartUpdate(const FirmwareUpdate& update, const Json& parameters);

}  // namespace muster::bmc
