// SPDX-License-Identifier: Apache-2.0
// What a virtual machine's firmware starts from: the override, the boot order with its options,
// and the LED by which people find the machine. Source: DSP2046 ComputerSystem, BootOption;
// UEFI 2.10, 10.3 (device paths); captures
#pragma once

#include "lab/vbmc/bmc_runtime.h"

#include <nlohmann/json.hpp>

namespace muster::lab::vbmc {

class BootService {
 public:
  explicit BootService(BmcRuntime& bmc) : bmc_(bmc) {}

  /// Boot of the system, or of its settings object.
  nlohmann::json bootObject(bool settings) const;
  /// The LED's properties, into the system or the chassis, where this vendor has it.
  void showLed(nlohmann::json& resource, LedOwner owner) const;
  /// The settings object, boot options.
  std::optional<nlohmann::json> resource(const std::string& path) const;

  /// Whether PATCH is possible on this path.
  bool takes(const std::string& path) const;
  /// `shown`: the resource as it is then.
  io::ServerResponse patch(const io::ServerRequest& request, const std::string& path,
                           const std::function<nlohmann::json()>& shown);

  /// What the firmware tries at a start; what waits for the start holds from then on.
  StartOptions beginStart();
  /// The override has been used.
  void endStart();

 private:
  struct Option {
    std::string reference, name, alias, path;
    BootDevice device = BootDevice::Disk;
  };
  std::vector<Option> options() const;
  std::vector<std::string> order() const;
  std::string idOf(const Option& option, std::size_t place) const;
  std::optional<io::ServerResponse> patchOverride(const nlohmann::json& boot);
  std::optional<io::ServerResponse> patchOrder(const nlohmann::json& boot, bool settings);
  io::ServerResponse patchOption(const io::ServerRequest& request, const std::string& path);

  BmcRuntime& bmc_;
};

}  // namespace muster::lab::vbmc
