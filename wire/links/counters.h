// SPDX-License-Identifier: Apache-2.0
// What an InfiniBand (or RoCE) port counts, and how much of it happened between two readings. Pure.
//
// Three traps decide the shapes here. A counter of PortCounters has 4 to 32 bits and *stops* at its
// highest value. Anybody may clear counters at any time (perfquery -R, OpenSM's performance
// manager, a driver that is loaded anew), so a value below the former one says nothing about what
// was lost. And two readings of one port are made at different times than two of another. So a
// difference is what happened at least, with whether that is all of it. Source: InfiniBand
// Architecture Specification 1.5, volume 1, 16.1.3.5 and 16.1.4.11; Linux
// Documentation/ABI/stable/sysfs-class-infiniband
#pragma once

#include "base/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace muster::links {

enum class Counter {
  SymbolErrors,
  Recoveries,     ///< the link trained again without going down
  Downs,          ///< the link went down
  ReceiveErrors,  ///< packets that arrived damaged
  RemoteErrors,   ///< packets that somebody before had marked as damaged already
  Discards,       ///< packets that this port could not send
  IntegrityErrors,
  OverrunErrors,
  SentConstraints,
  ReceivedConstraints,  ///< packets of a partition that the port may not have
  Waits,                ///< ticks in which there was something to send and no credit for it
  SentWords,
  ReceivedWords,  ///< of four bytes
  SentPackets,
  ReceivedPackets,
};
inline constexpr std::size_t kCounters = 15;

/// What it means when a counter grows.
enum class Meaning {
  Error,  ///< of the signal that this port receives, or of the link
  Drop,   ///< packets were lost, and the cable need not be why
  Wait,
  Load,
};
struct CounterRow {
  Counter counter;
  std::string_view mad;    ///< as perfquery and ibqueryerrors print it
  std::string_view sysfs;  ///< below ports/N/counters
  int bits;                ///< of PortCounters; it stops there
  Meaning meaning;
  std::string_view words;
};
std::span<const CounterRow, kCounters> counterRows();
inline const CounterRow& rowOf(Counter counter) {
  return counterRows()[static_cast<std::size_t>(counter)];
}

/// One reading of one port. What the port does not count stays nullopt.
struct PortReading {
  std::array<std::optional<std::uint64_t>, kCounters> values;

  std::optional<std::uint64_t>& operator[](Counter counter) {
    return values[static_cast<std::size_t>(counter)];
  }
  const std::optional<std::uint64_t>& operator[](Counter counter) const {
    return values[static_cast<std::size_t>(counter)];
  }
  bool empty() const;
};

struct Growth {
  std::uint64_t at_least = 0;
  bool is_all =
      true;  ///< false: it may have been more, since the counter was full or was cleared meanwhile
  bool is_full = false;  ///< it stands at its highest value: whatever comes now, nobody sees
};
struct PortGrowth {
  std::array<std::optional<Growth>, kCounters> values;  ///< nullopt: one of the readings has it not
  std::array<bool, kCounters> once = {};                ///< only one of the readings has it
  bool was_cleared = false;                             ///< some counter went back

  /// Whether no counter moved, of those that both readings have.
  bool isNone() const;

  const std::optional<Growth>& operator[](Counter counter) const {
    return values[static_cast<std::size_t>(counter)];
  }
  std::uint64_t atLeast(Counter counter) const {
    return (*this)[counter] ? (*this)[counter]->at_least : 0;
  }
};
/// Between two readings. A counter that went back was cleared, or began anew: what it shows now
/// happened since. One that went back makes all of the port's doubtful: a cleared counter may have
/// grown past its former value unseen.
PortGrowth growth(const PortReading& before, const PortReading& after);

}  // namespace muster::links
