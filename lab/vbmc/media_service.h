// SPDX-License-Identifier: Apache-2.0
// Virtual media of a virtual BMC. Source: DSP2046 VirtualMedia; captures
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

class MediaService {
 public:
  explicit MediaService(BmcRuntime& bmc) : bmc_(bmc) {}

  /// Where the collection is; "": this vendor's has none.
  std::string collectionPath() const;
  std::optional<nlohmann::json> resource(const std::string& path) const;
  /// Nullopt: it is none of this service's actions.
  Task<std::optional<io::ServerResponse>> post(io::ServerRequest request, std::string path);

 private:
  const MediaDrive* driveAt(const std::string& path) const;
  io::ServerResponse insert(const MediaDrive& drive, const io::ServerRequest& request);

  BmcRuntime& bmc_;
};

}  // namespace muster::lab::vbmc
