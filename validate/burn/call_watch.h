// SPDX-License-Identifier: Apache-2.0
// Which calls into devices have not returned. A kernel that hangs or a driver that has lost its GPU
// lets a call wait for ever, and nothing can take it back: who waits too long is named, and the
// process ends.
#pragma once

#include "validate/burn/device.h"

#include <map>
#include <mutex>

namespace muster::burn {

struct PendingCall {
  std::size_t device = 0;
  std::string what;  ///< "multiplying 40 matrices"
  std::chrono::steady_clock::time_point began;
  std::chrono::milliseconds bound{0};
};

/// For several threads.
class CallWatch {
 public:
  /// While it lives the call is pending.
  class Pending {
   public:
    Pending(CallWatch& watch, PendingCall call);
    ~Pending();
    Pending(const Pending&) = delete;
    Pending& operator=(const Pending&) = delete;

   private:
    CallWatch& watch_;
    std::uint64_t id_ = 0;
  };

  /// The call that is pending longest beyond its bound.
  std::optional<PendingCall> overdue(std::chrono::steady_clock::time_point now) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::uint64_t, PendingCall> pending_;
  std::uint64_t next_ = 0;
};

/// The device, with every call into it noted. `bound`: for a call; walks over memory get more by
/// their size. All are borrowed.
std::unique_ptr<Device> watched(Device& device, std::size_t number, CallWatch& watch,
                                std::chrono::milliseconds bound);

}  // namespace muster::burn
