// SPDX-License-Identifier: Apache-2.0
#include "app/state_lock.h"

#include <iostream>
#include <thread>

namespace muster::app {
namespace {

constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kAskShortly{600};
constexpr std::chrono::seconds kAskFor{
    3};  ///< keep looks into the file for a moment now and then: that is nobody's turn

/// Tries until `limit`, or for ever.
Result<io::FileLock> takeWithin(const std::filesystem::path& file,
                                std::optional<std::chrono::milliseconds> limit) {
  const auto until =
      std::chrono::steady_clock::now() + limit.value_or(std::chrono::milliseconds(0));
  while (true) {
    auto lock = io::FileLock::take(file);
    if (lock || lock.error().code() != ErrorCode::Conflict) return lock;
    if (limit && std::chrono::steady_clock::now() >= until) return lock;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

Result<Turn> takeTurn(const std::filesystem::path& state) {
  TRY(asked, takeWithin(state / "turn", kAskFor));
  auto at_once = io::FileLock::take(state / "lock");
  if (at_once) return Turn{std::move(asked), std::move(*at_once)};
  if (at_once.error().code() != ErrorCode::Conflict) return fail(at_once.error());
  std::cerr << "muster: another muster has the state folder; if it is `muster keep`, it stands "
               "aside now\n";
  auto lock = takeWithin(state / "lock", kHandOver);
  if (!lock)
    return fail(std::move(lock).error().within(
        fmt::format("it did not stand aside within {} s", kHandOver.count())));
  return Turn{std::move(asked), std::move(*lock)};
}

Result<io::FileLock> askForTurn(const std::filesystem::path& state) {
  return takeWithin(state / "turn", kAskShortly);
}

Result<Turn> takeKeepersTurn(const std::filesystem::path& state) {
  TRY(asked, takeWithin(state / "turn", std::nullopt));
  (void)asked;  // held until the lock is
  TRY(lock, takeWithin(state / "lock", std::nullopt));
  return Turn{std::nullopt, std::move(lock)};  // the place where others ask is free again
}

bool isAskedFor(const std::filesystem::path& state) {
  const auto mine = io::FileLock::take(state / "turn");
  return !mine && mine.error().code() == ErrorCode::Conflict;
}

Result<io::FileLock> takeKeepersPlace(const std::filesystem::path& state) {
  auto place = io::FileLock::take(state / "keep");
  if (!place) return fail(std::move(place).error().within("there is a muster keep already"));
  return place;
}

}  // namespace muster::app
