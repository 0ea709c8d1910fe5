// SPDX-License-Identifier: Apache-2.0
// The images that the inventory declares, as far as they are built: found once, and kept.
#pragma once

#include "base/architecture.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "provision/images/packed_image.h"

#include <map>
#include <set>
#include <string>

namespace muster::provision {

class ImageStore;

class BuiltImages {
 public:
  BuiltImages(const inventory::Cluster& cluster, const ImageStore& store)
      : cluster_(cluster), store_(store) {}

  /// Errors: NotFound (not declared, not built), and the store's own; each says what to do
  Result<PackedImage> find(const std::string& name) const;
  /// Why no node of that architecture can start a RAM OS; empty: it can.
  std::string whyNoRamOs(Architecture architecture) const;
  /// Value of the facet `image` for the system whose digest a node reports: "NAME@DIGEST", or
  /// "unknown@DIGEST" where the inventory declares no such image.
  std::string installedValue(const std::string& digest) const;

 private:
  const inventory::Cluster& cluster_;
  const ImageStore& store_;
  mutable std::map<std::string, PackedImage> packed_;  ///< they do not change under their key
  mutable std::set<Architecture> has_ram_os_;
};

}  // namespace muster::provision
