// SPDX-License-Identifier: Apache-2.0
// One reader of a serial line, and all others served by it. A BMC has one SOL session, a virtual
// machine's socket takes one connection: a second reader would be refused, or would take bytes from
// the first. So whoever opens a node's line holds a lock and serves the line on a socket beside it;
// whoever comes later, in this process or another, gets the same bytes from there and may type too.
//
//   RUN/NODE.lock   held for as long as the line is
//   RUN/NODE.sock   bytes in both directions, raw
#pragma once

#include "base/ids.h"
#include "bmc/console/source.h"

namespace muster::bmc {

inline constexpr std::size_t kMaxWatchers = 8;  ///< of one line
inline constexpr std::size_t kWatcherBytes =
    256u << 10;  ///< that wait for a slow one; then what waits is dropped, and it is told
inline constexpr std::size_t kTypedBytes = 16u << 10;  ///< that wait for the line

/// RUN is made private. The holder must go on reading: what it reads is what the others see.
std::unique_ptr<ConsoleSource> shareConsole(std::unique_ptr<ConsoleSource> source,
                                            std::filesystem::path run_folder, NodeName node);

}  // namespace muster::bmc
