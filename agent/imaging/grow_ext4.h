// SPDX-License-Identifier: Apache-2.0
// An ext4 that an image brought, made to fill its partition.
#pragma once

#include "base/result.h"

#include <filesystem>

namespace muster::agent {

/// Checks the file system and grows it to its device (or file). resize2fs refuses one that was
/// mounted after its last check, and an image of a system that ever ran is such a one; so e2fsck
/// goes first and mends what it can without asking. Errors: InvalidInput (e2fsck leaves faults;
/// with its words), Internal
Result<void> growExt4(const std::filesystem::path& device);

}  // namespace muster::agent
