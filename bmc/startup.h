// SPDX-License-Identifier: Apache-2.0
// What still comes up behind a BMC, of drivers that can tell. A driver derives from DeviceStates;
// what stands before it hands it on.
#pragma once

#include "bmc/bmc.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::bmc {

/// A network adapter that the BMC shows as starting, or lists and cannot read.
struct DeviceState {
  std::string name, state;
};

class DeviceStates {
 public:
  virtual ~DeviceStates() = default;
  /// Those that are not ready. None while the host is off. Errors: what the reads end with
  virtual Async<std::vector<DeviceState>> notReady() = 0;
};

/// None of a driver that cannot tell.
inline Async<std::vector<DeviceState>> devicesNotReady(Bmc& bmc) {
  auto* states = dynamic_cast<DeviceStates*>(&bmc);
  if (!states) co_return std::vector<DeviceState>();
  co_return co_await states->notReady();
}

/// Behind the URI where a task goes on: asking for it orders the work, once. Written down first,
/// and then asked for at once.
inline constexpr std::string_view kOrderMark = "#order";

/// TaskState of an update that has not begun: some NICs begin only at the next restart of the host.
/// Their TaskStatus' message begins so.
inline constexpr std::string_view kStarting = "Starting";
inline bool isStarting(const TaskStatus& status) {
  return status.state == TaskState::Running && status.message.starts_with(kStarting);
}

}  // namespace muster::bmc
