// SPDX-License-Identifier: Apache-2.0
#include "provision/built_images.h"

#include "inventory/model/cluster.h"
#include "inventory/model/images.h"
#include "provision/facets.h"
#include "provision/images/image_store.h"
#include "provision/images/ramos.h"

#include <fmt/format.h>

namespace muster::provision {

Result<PackedImage> BuiltImages::find(const std::string& name) const {
  if (const auto known = packed_.find(name); known != packed_.end()) return known->second;
  const auto declared = cluster_.images.find(name);
  if (declared == cluster_.images.end())
    return fail(ErrorCode::NotFound, fmt::format("the inventory declares no image {}", name));
  auto found = store_.find(declared->second);
  if (!found) {
    return fail(
        found.error().code(),
        fmt::format(
            "{}; `muster image build {}` checks its pack and signs it again, or builds it anew",
            found.error().str(), name));
  }
  if (!*found)
    return fail(ErrorCode::NotFound,
                fmt::format("image {} is not built; run `muster image build {}`", name, name));
  return packed_[name] = **found;
}

/// A node that waits in its drain for a RAM OS which nobody has built is out of work for nothing.
std::string BuiltImages::whyNoRamOs(Architecture architecture) const {
  if (has_ram_os_.contains(architecture)) return {};
  const auto found = store_.findRamOs(architecture);
  if (!found) return found.error().str();
  if (!found->has_value()) return noRamOs(architecture);
  has_ram_os_.insert(architecture);
  return {};
}

std::string BuiltImages::installedValue(const std::string& digest) const {
  for (const auto& [name, declared] : cluster_.images) {
    if (const auto known = find(name); known && known->digest == digest)
      return imageValue(name, *known);
  }
  return "unknown@" + (digest.empty() ? "?" : digest);
}

}  // namespace muster::provision
