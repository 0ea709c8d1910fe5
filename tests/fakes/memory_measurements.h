// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "lifecycle/store/measurements.h"

namespace muster::test {

class MemoryMeasurements final : public lifecycle::Measurements {
 public:
  Result<void> add(const std::vector<lifecycle::MeasuredSet>& more) override {
    sets.insert(sets.end(), more.begin(), more.end());
    return {};
  }
  Result<std::vector<lifecycle::MeasuredSet>> since(WallTime time) override {
    std::vector<lifecycle::MeasuredSet> out;
    for (const auto& set : sets)
      if (set.at >= time) out.push_back(set);
    return out;
  }
  std::vector<lifecycle::MeasuredSet> sets;
};

}  // namespace muster::test
