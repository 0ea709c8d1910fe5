// SPDX-License-Identifier: Apache-2.0
// Versions as constraints compare them: of each component the part that its pattern finds. What
// cannot be compared is neither newer nor older, and no constraint about it is satisfied
// (docs/adr/0227).
#pragma once

#include "inventory/model/firmware.h"

#include <map>
#include <string>
#include <tuple>

namespace muster::firmware {

class ComparableVersions {
 public:
  using Holds = inventory::FirmwareTerm::Holds;

  /// No patterns.
  ComparableVersions() = default;
  /// `baseline` outlives it.
  explicit ComparableVersions(const inventory::FirmwareBaseline& baseline) : baseline_(&baseline) {}

  /// Whether the term holds for this version of this component. Remembered: the solver asks often.
  Holds holds(const inventory::FirmwareTerm& term, const std::string& component,
              const std::string& version) const;
  /// Why the term says nothing about this version; what to do about it.
  std::string whyUnknown(const inventory::FirmwareTerm& term, const std::string& component,
                         const std::string& version) const;
  /// Whether `version` comes before `other`. Errors: InvalidInput (they cannot be compared)
  Result<bool> isBelow(const std::string& component, const std::string& version,
                       const std::string& other) const;

 private:
  std::string patternOf(const std::string& component) const;

  const inventory::FirmwareBaseline* baseline_ = nullptr;
  mutable std::map<std::tuple<std::string, std::string, std::string>, Holds> known_;
};

}  // namespace muster::firmware
