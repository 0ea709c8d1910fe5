// SPDX-License-Identifier: Apache-2.0
// One upload for several components, of drivers that know where that is so.
#pragma once

#include "bmc/bmc.h"

#include <string>

namespace muster::bmc {

class SharedPackages {
 public:
  virtual ~SharedPackages() = default;
  /// Whether a package that holds images of both is written into both, whichever of them it is sent
  /// for.
  virtual Async<bool> sharesPackage(std::string component, std::string other) = 0;
};

/// No, of a driver that does not know.
inline Async<bool> sharesPackage(Bmc& bmc, std::string component, std::string other) {
  auto* packages = dynamic_cast<SharedPackages*>(&bmc);
  if (!packages) co_return false;
  co_return co_await packages->sharesPackage(std::move(component), std::move(other));
}

}  // namespace muster::bmc
