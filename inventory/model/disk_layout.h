// SPDX-License-Identifier: Apache-2.0
// What becomes of a node's disks, as a profile declares it: the same type as in the agent's task.
#pragma once

#include "wire/disk_layout.h"

namespace muster::inventory {

using wire::FileSystem;
using wire::leastDisks;
using wire::RaidLevel;
using wire::raidNumber;
using wire::RootKey;
using wire::RootLayout;
using wire::StorageSet;
using wire::StorageVolume;

}  // namespace muster::inventory
