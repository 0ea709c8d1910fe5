// SPDX-License-Identifier: Apache-2.0
#include "app/state_lock.h"

#include <iostream>
#include <thread>

namespace muster::app {
namespace {

constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kRequestTimeout{600};
constexpr std::chrono::seconds kAcquireTimeout{
    3};  ///< the monitor takes the request for a moment now and then, to see whether it is free

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

Result<StateLock> acquireLock(const std::filesystem::path& state) {
  TRY(request, takeWithin(state / "turn", kAcquireTimeout));
  auto at_once = io::FileLock::take(state / "lock");
  if (at_once) return StateLock{std::move(request), std::move(*at_once)};
  if (at_once.error().code() != ErrorCode::Conflict) return fail(at_once.error());
  std::cerr
      << "muster: another muster process works with the state folder; `muster monitor` releases it "
         "now\n";
  auto lock = takeWithin(state / "lock", kHandOverTimeout);
  if (!lock)
    return fail(std::move(lock).error().within(
        fmt::format("it was not released within {} s", kHandOverTimeout.count())));
  return StateLock{std::move(request), std::move(*lock)};
}

Result<io::FileLock> requestLock(const std::filesystem::path& state) {
  return takeWithin(state / "turn", kRequestTimeout);
}

Result<StateLock> acquireMonitorLock(const std::filesystem::path& state) {
  TRY(request, takeWithin(state / "turn", std::nullopt));
  (void)request;  // held until the lock is
  TRY(lock, takeWithin(state / "lock", std::nullopt));
  return StateLock{std::nullopt, std::move(lock)};  // commands can request it again
}

bool isLockRequested(const std::filesystem::path& state) {
  const auto mine = io::FileLock::take(state / "turn");
  return !mine && mine.error().code() == ErrorCode::Conflict;
}

Result<io::FileLock> acquireMonitorInstance(const std::filesystem::path& state) {
  auto place = io::FileLock::take(state / "keep");
  if (place || place.error().code() != ErrorCode::Conflict) return place;
  return fail(
      std::move(place).error().within("a muster monitor of this state folder runs already"));
}

}  // namespace muster::app
