// SPDX-License-Identifier: Apache-2.0
// The LED by which a machine is found in its rack: LocationIndicatorActive, or IndicatorLED of
// older services, on the system or on a chassis that holds it. Source: DSP2046
#pragma once

#include "bmc/redfish/resources.h"

#include <optional>
#include <string>

namespace muster::bmc {

class LocateLed {
 public:
  explicit LocateLed(RedfishResources& resources) : resources_(resources) {}
  Async<bool> isOn();
  Async<void> set(bool on);

 private:
  struct Led {
    std::string uri, etag;
    bool on = false;
    bool by_word = false;  ///< IndicatorLED
  };
  Async<Led> find();
  std::optional<Led> ledOf(const std::string& uri, const RedfishReply& reply, bool lit_is_idle);

  RedfishResources& resources_;
};

}  // namespace muster::bmc
