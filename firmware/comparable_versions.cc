// SPDX-License-Identifier: Apache-2.0
#include "firmware/comparable_versions.h"

#include <fmt/format.h>

namespace muster::firmware {

std::string ComparableVersions::patternOf(const std::string& component) const {
  const auto* declared = baseline_ ? baseline_->find(component) : nullptr;
  return declared ? declared->pattern : std::string();
}

ComparableVersions::Holds ComparableVersions::holds(const inventory::FirmwareTerm& term,
                                                    const std::string& component,
                                                    const std::string& version) const {
  const auto [known, fresh] =
      known_.try_emplace(std::tuple(term.str(), component, version), Holds::Unknown);
  if (fresh)
    if (const auto part = inventory::comparablePart(patternOf(component), version))
      known->second = term.holds(*part);
  return known->second;
}

std::string ComparableVersions::whyUnknown(const inventory::FirmwareTerm& term,
                                           const std::string& component,
                                           const std::string& version) const {
  const auto pattern = patternOf(component);
  if (const auto part = inventory::comparablePart(pattern, version); !part)
    return fmt::format("{} {}: {}", component, version, part.error().text());
  return fmt::format("{} {} cannot be compared with {}; {}", component, version, term.version,
                     pattern.empty() ? "declare `pattern` for it, which finds the comparable part"
                                     : "its pattern finds a part of another kind");
}

Result<bool> ComparableVersions::isBelow(const std::string& component, const std::string& version,
                                         const std::string& other) const {
  const auto pattern = patternOf(component);
  TRY(left, inventory::comparablePart(pattern, version));
  TRY(right, inventory::comparablePart(pattern, other));
  const auto order = inventory::comparedVersions(left, right);
  if (!order)
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} {} cannot be compared with {}; declare `pattern` for it, which "
                            "finds the comparable part",
                            component, version, other));
  return *order < 0;
}

}  // namespace muster::firmware
