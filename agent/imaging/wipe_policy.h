// SPDX-License-Identifier: Apache-2.0
// What may be lost when a node is written, looked at twice: before the first byte of all, and again
// before data disks are divided. A permission for the system disk covers no data: rollouts and
// re-images carry it every day. docs/adr/0111
#pragma once

#include "agent/core/disk_content.h"
#include "agent/imaging/storage_plan.h"

#include <functional>

namespace muster::agent {

struct WipePolicy {
  bool system = false;  ///< the system disk, and encrypted sets whose key lies on it
  bool data = false;    ///< whatever disks of storage sets hold
};

/// describeDiskContent, but for tests.
using ContentOf = std::function<Result<DiskContent>(const DiskInfo&)>;

/// Errors: Denied (names every disk that is in the way and what it holds; SystemWipeDenied or
/// DataWipeDenied, or both), and those of looking
Result<void> guardDisks(const std::vector<DiskInfo>& system_disks, const StoragePlan& storage,
                        WipePolicy policy, const ContentOf& content_of);

}  // namespace muster::agent
