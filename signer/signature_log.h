// SPDX-License-Identifier: Apache-2.0
// What was signed, a line each, on the disk before the signature leaves the process: one that
// cannot be written down is not given out. A file that has grown large is moved aside; the newest
// few stay.
//
//   2026-01-31T12:00:00.000Z uid=104 pid=712 node-certificate node=gpu001 expires=… sha256=… key=…
#pragma once

#include "base/clock.h"
#include "base/io/files.h"

#include <cstdint>
#include <filesystem>

namespace muster::signer {

struct SignatureLogLimits {
  std::uint64_t file_bytes = 32u << 20;  ///< some 100,000 signatures
  int files = 16;
};

class SignatureLog {
 public:
  explicit SignatureLog(std::filesystem::path folder, SignatureLogLimits limits = {})
      : file_(std::move(folder) / kFile), limits_(limits) {}
  /// On the disk when it returns. A part of a line is taken back. Errors: Unavailable (the disk)
  Result<void> add(WallTime at, std::string_view words);

  static constexpr std::string_view kFile = "signed.log";

 private:
  Result<void> open();
  void moveAside();

  std::filesystem::path file_;
  SignatureLogLimits limits_;
  io::Fd fd_;
};

}  // namespace muster::signer
