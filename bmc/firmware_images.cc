// SPDX-License-Identifier: Apache-2.0
#include "bmc/firmware_images.h"

#include "base/io/crypto.h"
#include "base/io/files.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace muster::bmc {
namespace {

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Result<FirmwareImage> readFirmwareImage(const FirmwareUpdate& update) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(update.file, error);
  if (error)
    return fail(ErrorCode::NotFound, fmt::format("cannot read the firmware file {}: {}",
                                                 update.file.string(), error.message()));
  if (size == 0 || size > kMaxFirmwareBytes) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("the firmware file {} has {} bytes; 1 to {} are accepted",
                            update.file.string(), size, kMaxFirmwareBytes));
  }
  std::string bytes(size, '\0');
  std::ifstream in(update.file, std::ios::binary);
  in.read(bytes.data(), static_cast<std::streamsize>(size));
  if (!in || in.gcount() != static_cast<std::streamsize>(size)) {
    return fail(ErrorCode::NotFound,
                "cannot read the firmware file " + update.file.string() + " to its end");
  }
  const std::string seen = io::sha256Hex(bytes);
  if (seen != lower(update.sha256)) {
    return fail(ErrorCode::Corrupt,
                fmt::format("the firmware file {} has SHA-256 {}, but {} is declared for {}; "
                            "nothing was sent. Fetch the "
                            "file again or correct the baseline",
                            update.file.string(), seen, update.sha256, update.component));
  }
  return std::make_shared<const std::string>(std::move(bytes));
}

Async<FirmwareImage> FirmwareImages::beside(std::filesystem::path file) {
  co_return co_await offload<Result<FirmwareImage>>(workers_, [file]() -> Result<FirmwareImage> {
    std::error_code none;
    const auto size = std::filesystem::file_size(file, none);
    if (none) return FirmwareImage();
    if (size > kMaxSignatureBytes)
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("{} has {} bytes, which is too much for a signature", file.string(), size));
    TRY(bytes, io::readFile(file));
    return std::make_shared<const std::string>(std::move(bytes));
  });
}

Async<FirmwareImage> FirmwareImages::get(FirmwareUpdate update) {
  auto permit = co_await one_.enter();
  const auto key = lower(update.sha256);
  if (auto known = by_sha256_[key].lock()) co_return known;
  CO_TRY(image, co_await offload<Result<FirmwareImage>>(
                    workers_, [update] { return readFirmwareImage(update); }));
  std::erase_if(by_sha256_, [](const auto& entry) { return entry.second.expired(); });
  by_sha256_[key] = image;
  co_return image;
}

}  // namespace muster::bmc
