// SPDX-License-Identifier: Apache-2.0
#include "lab/vbmc/firmware_file.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_output.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

namespace {

constexpr std::string_view kMagic = "muster-fw/1 ";

struct Parts {
  FirmwareHeader header;
  std::string_view payload;
};

Result<Parts> split(std::string_view image) {
  if (!image.starts_with(kMagic))
    return fail(ErrorCode::Corrupt, "the image does not start with 'muster-fw/1'");
  auto end = image.substr(0, kMaxFirmwareHeaderBytes).find('\n');
  if (end == std::string_view::npos)
    return fail(ErrorCode::Corrupt, "the image's header line has no end");
  auto json = jsonOrNone(image.substr(kMagic.size(), end - kMagic.size()), kArchiveJson);
  Parts parts;
  if (!json.is_object()) return fail(ErrorCode::Corrupt, "the image's header is not a JSON object");
  for (auto [key, field] : {std::pair{"component", &parts.header.component},
                            {"version", &parts.header.version},
                            {"sha256", &parts.header.payload_sha256}}) {
    auto found = json.find(key);
    if (found == json.end() || !found->is_string())
      return fail(ErrorCode::Corrupt, fmt::format("the image's header lacks '{}'", key));
    *field = found->get<std::string>();
  }
  parts.payload = image.substr(end + 1);
  return parts;
}

}  // namespace

std::string makeFirmware(std::string_view component, std::string_view version,
                         std::size_t payload_bytes) {
  std::string payload;
  payload.reserve(payload_bytes + 64);
  std::string link = io::sha256Hex(fmt::format("muster-fw/1 {} {}", component, version));
  while (payload.size() < payload_bytes) {
    payload += link;
    link = io::sha256Hex(link);
  }
  payload.resize(payload_bytes);
  nlohmann::json header = {
      {"component", component}, {"version", version}, {"sha256", io::sha256Hex(payload)}};
  return fmt::format("{}{}\n{}", kMagic, jsonText(header), payload);
}

Result<FirmwareHeader> readFirmwareHeader(std::string_view image) {
  TRY(parts, split(image));
  return parts.header;
}

Result<void> verifyFirmware(std::string_view image) {
  TRY(parts, split(image));
  auto found = io::sha256Hex(parts.payload);
  if (found == parts.header.payload_sha256) return {};
  return fail(ErrorCode::Corrupt, fmt::format("the payload's SHA-256 is {}, the header says {}",
                                              found, parts.header.payload_sha256));
}

}  // namespace muster::lab::vbmc
