#include "bmc/multipart.h"

#include "base/io/crypto.h"

#include <algorithm>
#include <cctype>
#include <fstream>

namespace muster::bmc {
namespace {

/// A file name as a quoted string of a header: nothing that could end it.
std::string headerSafe(const std::string& name) {
  std::string safe = name;
  for (char& c : safe) {
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u >= 0x7f || c == '"' || c == '\\') c = '_';
  }
  return safe;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

}  // namespace

Result<MultipartBody> multipartUpdate(const FirmwareUpdate& update, const Json& parameters) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(update.file, error);
  if (error) return fail(ErrorCode::NotFound, fmt::format("cannot read the firmware file {}: {}", update.file.string(), error.message()));
  if (size == 0 || size > kMaxFirmwareBytes) {
    return fail(ErrorCode::InvalidInput, fmt::format("the firmware file {} has {} bytes; 1 to {} are accepted", update.file.string(), size, kMaxFirmwareBytes));
  }
  const std::string boundary = "muster-" + io::randomToken();
  std::string head = fmt::format(
      "--{0}\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\nContent-Type: application/json\r\n\r\n{1}\r\n"
      "--{0}\r\nContent-Disposition: form-data; name=\"UpdateFile\"; filename=\"{2}\"\r\nContent-Type: application/octet-stream\r\n\r\n",
      boundary, parameters.dump(), headerSafe(update.file.filename().string()));
  const std::string tail = "\r\n--" + boundary + "--\r\n";

  MultipartBody out{"multipart/form-data; boundary=" + boundary, {}, size};
  out.body.reserve(head.size() + size + tail.size());
  out.body = head;
  out.body.resize(head.size() + size);
  std::ifstream in(update.file, std::ios::binary);
  in.read(out.body.data() + head.size(), static_cast<std::streamsize>(size));
  if (!in || in.gcount() != static_cast<std::streamsize>(size)) {
    return fail(ErrorCode::NotFound, "cannot read the firmware file " + update.file.string() + " to its end");
  }
  const std::string seen = io::sha256Hex(std::string_view(out.body).substr(head.size()));
  if (seen != lower(update.sha256)) {
    return fail(ErrorCode::Corrupt, fmt::format("the firmware file {} has SHA-256 {}, but {} is declared for {}; nothing was sent. Fetch the "
                                                "file again or correct the baseline",
                                                update.file.string(), seen, update.sha256, update.component));
  }
  out.body += tail;
  return out;
}

}  // namespace muster::bmc
