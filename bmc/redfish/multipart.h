// SPDX-License-Identifier: Apache-2.0
// The body of a MultipartHttpPush upload: parameters, and the firmware image as it lies in memory.
#pragma once

#include "bmc/firmware_images.h"
#include "bmc/redfish/json_view.h"

namespace muster::bmc {

struct MultipartBody {
  std::string content_type;
  std::string begin;
  FirmwareImage image;
  std::string end;
  std::string cookie = {};
  std::string if_match = {};
  std::size_t bytes() const { return begin.size() + image->size() + end.size(); }
};

/// `file_name`: without its path, as the BMC's log will show it.
MultipartBody multipartUpdate(FirmwareImage image, const std::string& file_name,
                              const Json& parameters);

/// As web pages send it: plain fields, then a signature in the part "compsig" where there is one,
/// then the part "file".
MultipartBody formUpload(const std::vector<std::pair<std::string, std::string>>& fields,
                         FirmwareImage image, const std::string& file_name,
                         const FirmwareImage& signature = nullptr);

}  // namespace muster::bmc
