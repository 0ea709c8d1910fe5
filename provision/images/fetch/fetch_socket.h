// SPDX-License-Identifier: Apache-2.0
// The connection between the build unit, which has no network, and the fetch unit, which is not
// root (docs/adr/0437). Text goes both ways; a file that was fetched comes as an open descriptor,
// so that neither side sees the other's folders.
//
// The first line is one JSON object, the request: {"apt": "http"} or {"apt": "https"}, and then
// apt's messages; or {"dnf": …}, answered by lines of JSON (dnf_fetch.h).
#pragma once

#include "base/io/files.h"
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include <sys/types.h>

namespace muster::provision {

inline constexpr const char* kFetchSocket = "/run/muster-units/fetch";
/// Of the build unit: where to ask. Empty or not there: builds fetch by themselves.
inline constexpr const char* kFetchSocketVariable = "MUSTER_FETCH_SOCKET";

/// As poll takes it; 0: the time is over.
int millisecondsUntil(std::chrono::steady_clock::time_point until);

/// One end of it. The descriptor is somebody else's.
class FetchSocket {
 public:
  explicit FetchSocket(int fd) : fd_(fd) {}
  int fd() const { return fd_; }

  /// Adds what has arrived to `bytes`. False: the other side has ended. Errors: Corrupt (more
  /// descriptors than anybody sends)
  Result<bool> receive(std::string& bytes);
  /// That came with what was received, the oldest first.
  std::optional<io::Fd> takeDescriptor();
  /// With a descriptor, which the other side finds when it has read `text`. Errors: Timeout
  /// (nobody reads), Unavailable (the other side has ended)
  Result<void> send(std::string_view text, int descriptor = -1);

 private:
  int fd_;
  std::deque<io::Fd> descriptors_;
};

/// Connects to the fetch unit, whose socket must be `owner`'s. Errors: Unavailable (with what to
/// do), Denied (somebody else's socket)
Result<io::Fd> dialFetchUnit(const std::filesystem::path& socket, uid_t owner);

/// The largest packages have 3 GiB; a hole of any size costs who sends it nothing. The fetch unit's
/// LimitFSIZE is the same.
inline constexpr std::uint64_t kMaxFetchedBytes = 16ull << 30;
/// What a file may have.
struct FetchedSize {
  std::uint64_t least = 0, most = kMaxFetchedBytes;
};
/// Writes what `from` has to `to`, with its time and its holes; what is there already is replaced.
/// The copy is this process's own: who still holds `from` cannot change it when it has been
/// verified. Answers its size. Errors: Corrupt (no regular file, or not of that size: nothing is
/// written), Internal (the disk is full, …)
Result<std::uint64_t> copyFetched(int from, const std::filesystem::path& to, FetchedSize size = {});

}  // namespace muster::provision
