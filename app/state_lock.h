// SPDX-License-Identifier: Apache-2.0
// Whose turn it is with a state folder. One process works with it (the lock); `muster keep` works
// most of the time and lets anybody in who asks (the turn). All three files are advisory locks, so
// a process that dies has given its turn back. docs/adr/0015
#pragma once

#include "base/io/files.h"

#include <filesystem>
#include <optional>

namespace muster::app {

inline constexpr std::chrono::seconds kHandOver{
    60};  ///< keep hands over within a second or two; its machine may be slow

struct Turn {
  std::optional<io::FileLock>
      asked;  ///< held by a command as long as it works: keep stays away so long
  io::FileLock lock;
};

/// For commands that work once. Asks keep to stand aside, and waits until it has.
/// Errors: Conflict (another command works: its process is named), Timeout
Result<Turn> takeTurn(const std::filesystem::path& state);

/// What a command that works holds and keep does not: who has it knows that no command works on
/// this folder, whether keep runs or not. Errors: Conflict (a command works, or waits to)
Result<io::FileLock> askForTurn(const std::filesystem::path& state);

/// For keep: waits for as long as others work.
Result<Turn> takeKeepersTurn(const std::filesystem::path& state);
/// Whether somebody waits for keep to stand aside.
bool isAskedFor(const std::filesystem::path& state);
/// Held by keep for its whole life: there is one of them to a state folder. Errors: Conflict
Result<io::FileLock> takeKeepersPlace(const std::filesystem::path& state);

}  // namespace muster::app
