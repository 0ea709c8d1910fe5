// SPDX-License-Identifier: Apache-2.0
// The state folder holds the site's keys, its log and what consoles have shown: only its owner gets
// in.
#pragma once

#include "base/result.h"

#include <filesystem>

namespace muster::app {

inline constexpr unsigned kStateFolderMode = 0700;  ///< also of every folder in it
inline constexpr unsigned kStateFileMode = 0600;    ///< of every file in it

/// Makes the state folder, for its owner alone whatever the umask. One that other users could enter
/// is closed to them, with everything in it, and a line on stderr says so: what they may have read
/// (keys, the log) is then for the operator to evaluate. Errors: Denied (another user owns the
/// folder, or its mode cannot be changed), InvalidInput (it is no folder) Effect: idempotent; walks
/// the tree only when the folder was open to others
Result<void> prepareStateFolder(const std::filesystem::path& state);

/// Whether a muster has worked with it: from then on a store, or a lock's file, that is not there
/// was taken away.
bool wasUsed(const std::filesystem::path& state);

}  // namespace muster::app
