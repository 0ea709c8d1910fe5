// SPDX-License-Identifier: Apache-2.0
// An image of bytes in a cache, for tests that need one to be there and look at nothing in it.
#pragma once

#include "base/io/crypto.h"

#include <filesystem>
#include <string>

namespace muster::test {

/// Image "bookworm", built for Debian 12 with linux-image-amd64 by an inventory that says so.
/// Answers its digest.
Result<std::string> keepImageOfBytes(const std::filesystem::path& cache,
                                     const std::filesystem::path& agent, const io::SigningKey& key);

}  // namespace muster::test
