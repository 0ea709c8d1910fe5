// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/multipart.h"

#include "base/io/crypto.h"
#include "base/json_output.h"

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

}  // namespace

MultipartBody multipartUpdate(FirmwareImage image, const std::string& file_name,
                              const Json& parameters) {
  const std::string boundary = "muster-" + io::randomToken();
  std::string begin = fmt::format(
      "--{0}\r\nContent-Disposition: form-data; name=\"UpdateParameters\"\r\nContent-Type: "
      "application/json\r\n\r\n{1}\r\n"
      "--{0}\r\nContent-Disposition: form-data; name=\"UpdateFile\"; "
      "filename=\"{2}\"\r\nContent-Type: application/octet-stream\r\n\r\n",
      boundary, jsonText(parameters), headerSafe(file_name));
  return {"multipart/form-data; boundary=" + boundary, std::move(begin), std::move(image),
          "\r\n--" + boundary + "--\r\n"};
}

MultipartBody formUpload(const std::vector<std::pair<std::string, std::string>>& fields,
                         FirmwareImage image, const std::string& file_name,
                         const FirmwareImage& signature) {
  const std::string boundary = "muster-" + io::randomToken();
  std::string begin;
  for (const auto& [name, value] : fields)
    begin += fmt::format("--{}\r\nContent-Disposition: form-data; name=\"{}\"\r\n\r\n{}\r\n",
                         boundary, name, value);
  if (signature)
    begin += fmt::format(
        "--{}\r\nContent-Disposition: form-data; name=\"compsig\"; "
        "filename=\"{}.compsig\"\r\nContent-Type: application/octet-stream\r\n\r\n{}\r\n",
        boundary, headerSafe(std::filesystem::path(file_name).stem().string()), *signature);
  begin += fmt::format(
      "--{}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\nContent-Type: "
      "application/octet-stream\r\n\r\n",
      boundary, headerSafe(file_name));
  return {"multipart/form-data; boundary=" + boundary, std::move(begin), std::move(image),
          "\r\n--" + boundary + "--\r\n"};
}

}  // namespace muster::bmc
