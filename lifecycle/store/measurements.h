// SPDX-License-Identifier: Apache-2.0
// Measurements: every number that a check or a test has measured, for ever. They live in the
// store's database, but are no facts: nothing is planned from them, many come at once, and a
// statistic reads them all.
#pragma once

#include "base/clock.h"
#include "base/ids.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace muster::lifecycle {

/// What one run measured on one node.
struct MeasuredSet {
  WallTime at{};
  NodeName node;
  std::string origin;  ///< "gate.burn-in", "isolate"
  std::string sku;     ///< what it is compared with: profile and GPU model
  std::string rack;
  std::map<std::string, double>
      numbers;  ///< "gpu.hbm/hbm_gb_s@3": check, value that ends in its unit, device if any
};

class Measurements {
 public:
  virtual ~Measurements() = default;
  /// One commit. Numbers that are not finite are left out: they say that nothing was measured.
  virtual Result<void> add(const std::vector<MeasuredSet>& sets) = 0;
  /// Those since this time, oldest first.
  virtual Result<std::vector<MeasuredSet>> since(WallTime time) = 0;
};

/// On the store's database, which must have been opened before (it has the schema). `url` as for
/// openStore.
Result<std::unique_ptr<Measurements>> openMeasurements(const std::string& url);

}  // namespace muster::lifecycle
