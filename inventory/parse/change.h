// SPDX-License-Identifier: Apache-2.0
// Change: a fragment of an inventory that a rollout lays over some nodes, and how carefully it does
// so.
//
// What stands in a change replaces what the inventory says, in the inventory's own words: new
// entries of images, drivers and firmware, and for profiles which of them their nodes get. So the
// change that was rolled out is copied into the inventory as it is.
#pragma once

#include "base/diagnostic.h"
#include "base/held.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "inventory/model/section.h"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::inventory {

/// What becomes different of a profile; what is absent stays.
struct ProfileChange {
  std::string name;
  std::optional<std::string> image, firmware;
  std::optional<std::vector<std::string>> drivers;
};

struct Change {
  Section<Image> images;
  Section<Driver> drivers;
  Section<FirmwareBaseline> firmware;
  std::map<std::string, ProfileChange> profiles;
  Held<RolloutPolicy> policy;
};

struct LoadedChange {
  std::optional<Change> change;  ///< absent when there are errors
  Diagnostics diagnostics;
};

/// Reads a change that is meant for `cluster`. Relative paths start at the folder of `file`.
/// Shape:  YAML × Cluster → Change, or diagnostics with file:line:column
LoadedChange loadChangeText(std::string_view yaml, const std::filesystem::path& file,
                            const Cluster& cluster);

/// The change, as YAML, that puts the declared driver `name` in the place of the driver of the same
/// kind in these profiles. Of the same kind: a package, a module or a probe in common. Errors:
/// NotFound (no such driver, no profile has one of its kind), Conflict (a profile has several)
Result<std::string> changeToDriver(const Cluster& cluster, const std::string& name,
                                   const std::vector<std::string>& profiles);
bool sameKind(const Driver& a, const Driver& b);

/// What of this change cannot be undone, for a node that goes from one profile to the other: one
/// sentence each.
std::vector<std::string> irreversible(const Cluster& cluster, const Profile& from,
                                      const Profile& to);

}  // namespace muster::inventory
