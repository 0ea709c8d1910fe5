// SPDX-License-Identifier: Apache-2.0
// Taking back an image that was taken in and does not run yet, of drivers that can.
#pragma once

#include "bmc/bmc.h"

#include <string>

namespace muster::bmc {

class StagedImages {
 public:
  virtual ~StagedImages() = default;
  /// So many images that nobody wants any more wait on this BMC, this one among them: it will not
  /// be activated. Errors: NotFound (this BMC offers no way), Conflict (it holds more, or fewer:
  /// which is whose it does not say)
  virtual Async<void> cancelStaged(std::string component, std::size_t waiting) = 0;
};

/// Errors: NotFound of a driver that has no way
inline Async<void> cancelStaged(Bmc& bmc, std::string component, std::size_t waiting) {
  auto* images = dynamic_cast<StagedImages*>(&bmc);
  if (!images)
    co_return fail(
        ErrorCode::NotFound,
        bmc.address() + " offers no way to take an image back that waits for its activation");
  co_return co_await images->cancelStaged(std::move(component), waiting);
}

}  // namespace muster::bmc
