// SPDX-License-Identifier: Apache-2.0
// TCP streams with a deadline for everything: what pairs and meshes of hosts are made of. Blocking;
// non-blocking below.
#pragma once

#include "base/io/files.h"
#include "base/result.h"

#include <chrono>
#include <string>

namespace muster::collective {

using Socket = io::Fd;
using StreamClock = std::chrono::steady_clock;

/// Errors: Timeout (nothing came until `end`), Unavailable (the stream broke, or the other side
/// closed it)
Result<void> sendAll(int fd, const void* data, std::size_t bytes, StreamClock::time_point end);
Result<void> receiveAll(int fd, void* data, std::size_t bytes, StreamClock::time_point end);
/// Both at once, on two streams or on the two ways of one: neither waits for the other, so a ring
/// of such exchanges cannot stand still. `in_left`: after an error, how much of `in` has not come.
Result<void> exchangeAll(int to, const void* out, std::size_t out_bytes, int from, void* in,
                         std::size_t in_bytes, StreamClock::time_point end,
                         std::size_t* in_left = nullptr);

/// On all addresses. `port` 0: any. Errors: Unavailable (in use), InvalidInput
Result<Socket> listenAt(int port);
/// Of a listener. Errors: Unavailable
Result<int> portOf(int listener);
/// Errors: Timeout, Unavailable
Result<Socket> acceptOne(int listener, StreamClock::time_point end);
/// Tries again while nobody listens there yet. Errors: InvalidInput (no IPv4 address), Timeout,
/// Unavailable
Result<Socket> connectTo(const std::string& host, int port, StreamClock::time_point end);
/// This host's address on a stream, as the other side sees it without NAT.
Result<std::string> ownAddress(int fd);

}  // namespace muster::collective
