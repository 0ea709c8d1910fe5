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
  Async<VirtualMedium> insert(std::vector<std::string> urls);
  Async<void> eject(std::string drive_id);

 private:
  struct Drive {
    std::string uri;
    Json json;
  };
  /// Those that take a CD, else those that take a USB stick; the emptiest first. Errors: NotFound
  Async<std::vector<Drive>> drives();
  /// Which of the URLs it reads, in their order. Errors: InvalidInput (none)
  Async<std::vector<std::string>> readable(std::vector<std::string> urls,
                                           std::vector<std::string> allowed);
  /// What it says that it speaks; empty: it says nothing.
  Async<std::vector<std::string>> allowedProtocols(const Drive& drive);
  Async<void> order(const Drive& drive, std::string_view action, Json parameters, Json patch);
  Async<void> insertBy(const Drive& drive, std::string url, bool names_protocol);
  Async<void> waitFor(std::string uri, std::string url);

  RedfishResources& resources_;
};

}  // namespace muster::bmc
