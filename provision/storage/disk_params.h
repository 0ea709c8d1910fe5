// SPDX-License-Identifier: Apache-2.0
// What the write-image task is told of mirrors, other disks and user data; and what is found when
// it comes back.
#pragma once

#include "base/ids.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/finding.h"
#include "wire/write_image.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::provision {

/// Adds the mirrors of the image that `params` names, root, storage and user data where the
/// inventory has them.
void addDiskParams(const inventory::Profile& profile, const inventory::Node& node,
                   const std::vector<std::string>& image_mirrors, wire::WriteImageParams& params);

/// A finding for each mirror that the node dropped and each server that gave it wrong shared
/// pieces, and one for peers that did. `result`: the task's, as JSON. Mirrors of `standby_urls` are
/// not expected to answer.
std::vector<lifecycle::Finding> sourceFindings(const NodeName& node, const std::string& result,
                                               WallTime at,
                                               const std::vector<std::string>& standby_urls = {});

/// What the writing of an image failed of, when it is a disk. `why`: the agent's words, which name
/// it.
std::optional<lifecycle::Finding> diskFinding(const NodeName& node, const Error& why, WallTime at);

}  // namespace muster::provision
