// SPDX-License-Identifier: Apache-2.0
// Makes a pack of a raw file system image: chunks compressed side by side, empty ones left out.
#pragma once

#include "wire/pack_index.h"

#include <filesystem>
#include <string>

namespace muster::provision {

/// Shape:  raw image file → pack file + its index (not signed)
/// Units:  at most threads × a few chunks are in memory
/// Errors: InvalidInput (not a multiple of 4096 bytes, empty), Unavailable (disk full), Internal
Result<wire::PackIndex> writePack(const std::filesystem::path& raw,
                                  const std::filesystem::path& pack, const std::string& name,
                                  unsigned threads, wire::PackKind kind = wire::PackKind::RootFs);

}  // namespace muster::provision
