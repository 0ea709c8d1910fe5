// SPDX-License-Identifier: Apache-2.0
// BIOS attributes: what they are, what waits for the next boot, and staging new values. Names
// differ by vendor and carry suffixes (Supermicro: ARISupport_0049), so they are taken as the BMC
// spells them.
#pragma once

#include "bmc/redfish/resources.h"

#include <map>
#include <string>

namespace muster::bmc {

class RedfishBios final : public Bios {
 public:
  explicit RedfishBios(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<std::map<std::string, std::string>> biosAttributes() override;
  Async<std::map<std::string, std::string>> stagedBiosAttributes() override;
  Async<void> stageBios(std::map<std::string, std::string> values) override;

 private:
  struct Resource {
    Json json;
    std::string settings;   ///< where values are staged
    bool on_reset = false;  ///< they wait for ever unless their PATCH asks for the next restart
                            ///< (iDRAC)
  };
  Async<Resource> read();

  RedfishResources& resources_;
};

}  // namespace muster::bmc
