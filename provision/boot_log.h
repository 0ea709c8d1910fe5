// SPDX-License-Identifier: Apache-2.0
// Seam: which boots muster has begun, beyond the life of a process. A muster that starts finds a
// machine on and silent: only this tells it that the machine is still on its way.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "wire/messages.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {
class Store;
}

namespace muster::provision {

struct BegunBoot {
  wire::Mode mode = wire::Mode::Ram;
  WallTime at{};  ///< just before the power was switched
};

/// A boot medium that muster has put into a virtual CD, or was about to.
struct InsertedMedium {
  std::vector<std::string> urls;  ///< of its image: the BMC has one of them
  std::string drive;              ///< where it went; empty: the BMC has not answered yet
  friend bool operator==(const InsertedMedium&, const InsertedMedium&) = default;
};

class BootLog {
 public:
  virtual ~BootLog() = default;
  /// Before the power is switched.
  virtual Result<void> began(const NodeName& node, const BegunBoot& boot) = 0;
  /// Its system has called, or it was given up.
  virtual Result<void> ended(const NodeName& node) = 0;
  /// nullopt: none is under way.
  virtual Result<std::optional<BegunBoot>> underWay(const NodeName& node) = 0;

  /// Before the BMC is told, and again when it has answered.
  virtual Result<void> mediumGoesIn(const NodeName& node, const InsertedMedium& medium) = 0;
  virtual Result<void> mediumIsOut(const NodeName& node) = 0;
  /// nullopt: muster has left none there.
  virtual Result<std::optional<InsertedMedium>> medium(const NodeName& node) = 0;
};

/// In the store, one value a node.
std::unique_ptr<BootLog> makeBootLog(lifecycle::Store& store);

}  // namespace muster::provision
