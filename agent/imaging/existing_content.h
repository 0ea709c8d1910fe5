// SPDX-License-Identifier: Apache-2.0
// What a disk holds already: a pass over all chunks before anything is fetched. It is what makes a
// re-image cost what changed, and a writing go on where the power went.
#pragma once

#include "agent/imaging/block_target.h"
#include "wire/pack_index.h"

#include <cstdint>
#include <functional>

namespace muster::agent {

inline constexpr std::uint64_t kReaders =
    24;  ///< a disk answers many questions at once faster than one after the other
inline constexpr std::uint64_t kScanWindowBytes = 32u << 20;
inline constexpr std::size_t kMaxUnreadableChunks = 64;  ///< a disk with more of them is broken

/// As many readers as fit into the window, with chunks of any size.
std::uint64_t readersFor(const wire::PackIndex& index);

/// Whether these bytes are the chunk, by SHA-256: who had the disk before may have chosen what lies
/// there.
bool chunkMatches(const wire::PackIndex& index, std::size_t chunk, std::string_view raw);

/// Blocking. `right` is told of each chunk that is as wanted, on any thread; `looked` how many were
/// looked at, now and then. A chunk that cannot be read is not as wanted: a bad sector of what was
/// there before is mended by writing to it, and what is written is read back. Errors: the disk's,
/// when more than kMaxUnreadableChunks cannot be read
Result<void> scanContent(const wire::PackIndex& index, BlockTarget& target,
                         const std::function<void(std::size_t chunk, std::string_view raw)>& right,
                         const std::function<void(std::size_t chunks)>& scanned);

}  // namespace muster::agent
