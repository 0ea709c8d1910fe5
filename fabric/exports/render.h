// SPDX-License-Identifier: Apache-2.0
// Everything that follows from the declaration, as files: for `muster fabric render`. Pure.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"

#include <string>
#include <string_view>
#include <vector>

namespace muster::fabric {

struct ExpandedFabric;
struct KnownGuids;
struct Topology;

struct RenderedFile {
  std::string path;  ///< below the output folder: "opensm/gpu001/opensm.conf"
  std::string content;
};

/// Where a standby's files belong on its node; opensm.conf names it.
inline constexpr std::string_view kNodeOpensmFolder = "/etc/muster/opensm";

/// The files of a subnet manager on a node: opensm.conf, root_guids, io_guids, cn_guids,
/// partitions.conf, muster-opensm.service, and the master's guid2lid where it is known. Errors:
/// Unavailable (the HCA's GUID was never seen), InvalidInput
Result<std::vector<RenderedFile>> renderManager(const inventory::Cluster& cluster,
                                                const inventory::Fabric& fabric,
                                                const Topology& declared, const KnownGuids& known,
                                                const std::string& manager,
                                                const std::string& guid2lid);
/// Cabling sheet, plot and RoCE of each fabric (of several in a folder of its name each); Slurm,
/// Kubernetes and NCCL of the compute fabrics.
std::vector<RenderedFile> renderExports(const inventory::Cluster& cluster,
                                        const std::vector<ExpandedFabric>& fabrics);
/// Where the files of a fabric go: "", or "storage/" beside others.
std::string folderOf(const inventory::Fabric& fabric, std::size_t fabrics);

}  // namespace muster::fabric
