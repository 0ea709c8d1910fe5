// SPDX-License-Identifier: Apache-2.0
#include "app/site/state_lock.h"

#include "app/site/state_folder.h"
#include "base/log.h"

#include <fmt/format.h>

#include <iostream>
#include <thread>

namespace muster::app {
namespace {

constexpr std::chrono::milliseconds kPause{200};
constexpr std::chrono::milliseconds kRequestTimeout{600};
constexpr std::chrono::seconds kAcquireTimeout{
    3};  ///< the monitor takes the request for a moment now and then, to see whether it is free

constexpr auto kNoticeTimeout = 3 * kLockLookPeriod;

/// Tries once. A file that was taken away may still be locked by who cannot be seen: he is given
/// the time to notice.
Result<io::FileLock> take(const std::filesystem::path& file) {
  makeLockFiles(file.parent_path());
  std::error_code ignored;
  const bool was_there = std::filesystem::exists(std::filesystem::symlink_status(file, ignored));
  auto lock = io::FileLock::take(file);
  if (was_there || !lock) return lock;
  const auto text = fmt::format(
      "{} was taken away; waiting {} s for a muster that may hold the old one to notice and end",
      file.string(), std::chrono::seconds(kNoticeTimeout).count());
  std::cerr << "muster: " << text << "\n";
  logWarning("state", "{}", text);
  std::this_thread::sleep_for(kNoticeTimeout);
  return lock;
}

/// Tries until `limit`, or for ever.
Result<io::FileLock> takeWithin(const std::filesystem::path& file,
                                std::optional<std::chrono::milliseconds> limit) {
  const auto until =
      std::chrono::steady_clock::now() + limit.value_or(std::chrono::milliseconds(0));
  while (true) {
    auto lock = take(file);
    if (lock || lock.error().code() != ErrorCode::Conflict) return lock;
    if (limit && std::chrono::steady_clock::now() >= until) return lock;
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace

std::optional<std::filesystem::path> StateLock::lost() const {
  for (const auto* held : {&lock, request ? &*request : nullptr, instance})
    if (held && !held->isNamed()) return held->path();
  return std::nullopt;
}

Result<StateLock> acquireLock(const std::filesystem::path& state) {
  TRY(request, takeWithin(state / "turn", kAcquireTimeout));
  auto at_once = take(state / "lock");
  if (at_once) return StateLock{std::move(request), std::move(*at_once), nullptr};
  if (at_once.error().code() != ErrorCode::Conflict) return fail(at_once.error());
  std::cerr
      << "muster: another muster process works with the state folder; `muster monitor` releases it "
         "now\n";
  auto lock = takeWithin(state / "lock", kHandOverTimeout);
  if (!lock)
    return fail(std::move(lock).error().within(
        fmt::format("it was not released within {} s", kHandOverTimeout.count())));
  return StateLock{std::move(request), std::move(*lock), nullptr};
}

Result<io::FileLock> requestLock(const std::filesystem::path& state) {
  return takeWithin(state / "turn", kRequestTimeout);
}

Result<StateLock> acquireMonitorLock(const std::filesystem::path& state,
                                     const io::FileLock& instance) {
  TRY(request, takeWithin(state / "turn", std::nullopt));
  (void)request;  // held until the lock is
  TRY(lock, takeWithin(state / "lock", std::nullopt));
  return StateLock{std::nullopt, std::move(lock), &instance};  // commands can request it again
}

bool isLockRequested(const std::filesystem::path& state) {
  const auto mine = io::FileLock::take(state / "turn");
  return !mine && mine.error().code() == ErrorCode::Conflict;
}

bool isMonitorAlive(const std::filesystem::path& state) {
  std::error_code ignored;
  if (!std::filesystem::exists(state / "keep", ignored)) return false;
  const auto place = io::FileLock::take(state / "keep");
  return !place && place.error().code() == ErrorCode::Conflict;
}

Result<io::FileLock> acquireMonitorInstance(const std::filesystem::path& state) {
  auto place = takeWithin(state / "keep", kRequestTimeout);  // isMonitorAlive takes it for a moment
  if (place || place.error().code() != ErrorCode::Conflict) return place;
  return fail(
      std::move(place).error().within("a muster monitor of this state folder runs already"));
}

}  // namespace muster::app
