// SPDX-License-Identifier: Apache-2.0
// The RAM OS and the images of a site whose machines are simulated.
#pragma once

#include "base/io/crypto.h"
#include "base/result.h"

#include <filesystem>

namespace muster::test {

/// Builds the RAM OS, and image `bookworm` of the inventory, from nothing that a machine would
/// start. Signed by `key`.
Result<void> makeFleetImages(const std::filesystem::path& inventory,
                             const std::filesystem::path& cache, const io::SigningKey& key);

}  // namespace muster::test
