// SPDX-License-Identifier: Apache-2.0
// The inventory for a program that uses no secret of it and may see none: the unit that builds
// images (docs/adr/0343).
#pragma once

#include "inventory/inventory.h"

namespace muster::inventory {

/// As load(), but the files, variables and private keys that hold secrets are not looked at: that
/// one is missing is no error here.
Loaded loadWithoutSecrets(const std::filesystem::path& file);

}  // namespace muster::inventory
