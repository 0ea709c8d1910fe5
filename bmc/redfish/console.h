// SPDX-License-Identifier: Apache-2.0
// Where the serial console of a machine is: its system says it way by way (ComputerSystem from
// v1.13), older services in one list of their manager (Manager.SerialConsole: iLO 5, HGX).
#pragma once

#include "bmc/redfish/resources.h"

#include <string>

namespace muster::bmc {

/// Reads a system's SerialConsole; a manager's, where the ways are but listed.
SerialConsoleEndpoint serialConsoleOf(const Json& console);
SerialConsoleEndpoint listedSerialConsoleOf(const Json& console);

class RedfishConsole final : public Console {
 public:
  explicit RedfishConsole(RedfishResources& resources) : resources_(resources) {}

  std::string address() const override { return resources_.address(); }
  Async<SerialConsoleEndpoint> serialConsole() override;

 private:
  RedfishResources& resources_;
};

}  // namespace muster::bmc
