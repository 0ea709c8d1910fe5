// SPDX-License-Identifier: Apache-2.0
// The state folder holds the site's keys, its log and what consoles have shown: only its owner gets
// in.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

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

/// The files of the locks (state_lock.h), in a folder that no muster has used yet: one that lacks
/// later was taken away.
void makeLockFiles(const std::filesystem::path& state);

/// Unique among the controllers of one store, the same after a restart: only one process at a time
/// holds a state folder's lock.
Result<std::string> holderOf(const std::filesystem::path& state, const std::string& host);

}  // namespace muster::app
