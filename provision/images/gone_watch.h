// SPDX-License-Identifier: Apache-2.0
// A unit's process that works for one connection ends with it.
#pragma once

#include <string>
#include <thread>

namespace muster::provision {

/// Ends this process while it exists, when the other side of the connection has gone: nobody waits
/// any more. systemd ends with the process what it has started.
class GoneWatch {
 public:
  /// `said`: for the log, then.
  GoneWatch(int connection, std::string said);

 private:
  std::jthread thread_;
};

}  // namespace muster::provision
