// SPDX-License-Identifier: Apache-2.0
// Reads packs on the controller: checks every chunk, and unpacks an image to look into it.
#pragma once

#include "wire/pack_index.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::provision {

/// One sentence a fault: pack too short or too long, chunks that do not unpack to what the index
/// says. At most kMaxFaults.
std::vector<std::string> wrongChunks(const wire::PackIndex& index,
                                     const std::filesystem::path& pack, unsigned threads);

/// Writes the image out as a sparse file. Errors: Corrupt naming the chunk, Unavailable (disk full)
Result<void> unpack(const wire::PackIndex& index, const std::filesystem::path& pack,
                    const std::filesystem::path& raw);

}  // namespace muster::provision
