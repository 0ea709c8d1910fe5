// SPDX-License-Identifier: Apache-2.0
// Media that the BMC shows to its machine as a drive: an image that it reads by a URL. For networks
// in which nothing boots by PXE or HTTP.
#pragma once

#include "bmc/redfish/resources.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

class RedfishVirtualMedia {
 public:
  explicit RedfishVirtualMedia(RedfishResources& resources) : resources_(resources) {}
  Async<std::vector<VirtualMedium>> read();
  Async<void> insert(std::string url);
  Async<void> eject();

 private:
  struct Drive {
    std::string uri;
    Json json;
  };
  /// Those that take a CD, the emptiest first. Errors: NotFound
  Async<std::vector<Drive>> drives();
  Async<void> order(const Drive& drive, std::string_view action, Json parameters, Json patch);
  Async<void> waitFor(std::string uri, std::string url);

  RedfishResources& resources_;
};

}  // namespace muster::bmc
