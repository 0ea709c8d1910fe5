// SPDX-License-Identifier: Apache-2.0
// The machine's own boot order: the options that its firmware knows, and which it tries first.
// Changed where the service takes it, verified by reading it again.
#pragma once

#include "bmc/redfish/resources.h"

#include <string>
#include <vector>

namespace muster::bmc {

/// What an option starts from: by its Alias, its UEFI device path, else the words of its name.
/// Source: DSP2046 BootOption; UEFI 2.10, 10.3 (MAC, Uri, NVMe, Sata, HD nodes); captures
BootTarget bootTargetOf(const Json& boot_option);

class RedfishBootOrder {
 public:
  explicit RedfishBootOrder(RedfishResources& resources) : resources_(resources) {}
  Async<BootOrder> read();
  Async<void> write(std::vector<std::string> references);

 private:
  /// System and settings object; the latter null where there is none.
  Async<std::pair<Json, std::optional<Member>>> resources();

  RedfishResources& resources_;
};

}  // namespace muster::bmc
