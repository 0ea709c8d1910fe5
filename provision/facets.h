// SPDX-License-Identifier: Apache-2.0
// Names of the facets that provision owns, and the order of their stages. Pure.
#pragma once

#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

struct PackedImage;

inline constexpr std::string_view kEnrolled = "enrolled";
inline constexpr std::string_view kRaid = "raid";  ///< volumes of RAID controllers
inline constexpr std::string_view kInspected = "inspected";
inline constexpr std::string_view kImage = "image";
inline constexpr std::string_view kOs = "os";
inline constexpr std::string_view kNetwork = "network";  ///< also the probe that tells it
/// muster's boot medium in the node's virtual CD: "inserted", "none".
inline constexpr std::string_view kBootMedium = "boot-medium";
inline constexpr std::string_view kDriverPrefix = "driver.";
inline constexpr std::string_view kYes = "yes";
inline constexpr std::string_view kRunning = "running";
inline constexpr std::string_view kNone = "none";

inline FacetName facet(std::string_view name) { return FacetName(std::string(name)); }
inline FacetName driverFacet(const std::string& driver) {
  return facet(std::string(kDriverPrefix) + driver);
}

/// Probe → glob of the running version. A driver that declares none is verified by its packages and
/// modules.
std::map<std::string, std::string> probesOf(const inventory::Driver& driver);
/// "probe=value,…" sorted by probe. A probe without a value stands alone, so that no glob after '='
/// accepts it.
std::string joinProbes(const std::map<std::string, std::string>& values);

/// "NAME@DIGEST". While the image is not built its digest cannot be known: any system made from it
/// will do, and a node without one is blocked until the image is there.
std::string imageValue(const std::string& name, const std::optional<PackedImage>& packed);

/// Why something that a node would start from is missing; empty: it is there.
struct MissingParts {
  std::string image, ram_os;
};
std::vector<lifecycle::Goal> provisionGoals(const inventory::Cluster& cluster,
                                            const lifecycle::Subject& subject,
                                            const std::optional<PackedImage>& packed,
                                            const MissingParts& missing);

}  // namespace muster::provision
