// SPDX-License-Identifier: Apache-2.0
// StateLock: one process at a time works with a state folder (STATE/lock). `muster monitor` holds
// it most of the time and releases it when a command requests it (STATE/turn). STATE/keep is held
// by the one monitor of the folder. All three are advisory locks, so a process that dies has
// released them. Their files stay for ever: whoever has to make one anew in a folder that was used
// waits until a holder of the deleted one has noticed and ended (StoreWatch). docs/adr/0015
#pragma once

#include "base/io/files.h"

#include <filesystem>
#include <optional>

namespace muster::app {

inline constexpr std::chrono::seconds kHandOverTimeout{
    60};  ///< the monitor releases it within a second or two; its machine may be slow

struct StateLock {
  std::optional<io::FileLock>
      request;  ///< held by a command as long as it works: the monitor waits
  io::FileLock lock;
  const io::FileLock* instance = nullptr;  ///< of a monitor; it outlives this

  /// The file of one of them that was deleted or replaced: others can lock a new one, and work
  /// beside this process.
  std::optional<std::filesystem::path> lost() const;
};

/// How often a process that acts looks whether its locks are still the ones that others meet.
inline constexpr std::chrono::seconds kLockLookPeriod{2};

/// For commands that work once. Requests the lock from the monitor, and waits until it is released.
/// Errors: Conflict (another command works: its process is named), Timeout
Result<StateLock> acquireLock(const std::filesystem::path& state);

/// The request alone, which a command holds while it works and the monitor never does: who has it
/// knows that no command works on this folder. Errors: Conflict (a command works, or waits to)
Result<io::FileLock> requestLock(const std::filesystem::path& state);

/// For the monitor: waits for as long as commands work.
Result<StateLock> acquireMonitorLock(const std::filesystem::path& state,
                                     const io::FileLock& instance);
/// Whether a command waits for the monitor to release the lock.
bool isLockRequested(const std::filesystem::path& state);
/// Whether a monitor of this folder is alive, whoever works with the folder at this moment.
bool isMonitorAlive(const std::filesystem::path& state);
/// Held by a monitor for its whole life: a state folder has at most one. Errors: Conflict
Result<io::FileLock> acquireMonitorInstance(const std::filesystem::path& state);

}  // namespace muster::app
