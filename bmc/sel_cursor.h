// SPDX-License-Identifier: Apache-2.0
// EventLogCursor: how far each of a BMC's event logs was read, and what of weight was new since.
// Events that the BMC tells by itself come through the same door, so that what stands in the log
// too is said once. Pure; kept in the store as text.
#pragma once

#include "bmc/bmc.h"

#include <map>
#include <string>
#include <vector>

namespace muster::bmc {

inline constexpr std::size_t kLogKept = 20;  ///< entries of weight, for the finding
inline constexpr std::chrono::hours kLogFindingFor{24 * 7};
inline constexpr std::chrono::minutes kSameEventWithin{
    10};  ///< an event and its log entry are seen so close together

/// Whether anybody should hear of it.
bool isSignificant(const std::string& severity);

struct EventLogCursor {
  /// An entry of weight, and when muster saw it first: clocks of BMCs are often years off.
  struct Kept {
    WallTime seen{};
    std::string created, severity, message;
    bool from_event = false;  ///< told by the BMC, not read in its log yet
    std::string log = {}, resolution = {};
  };
  /// The newest entry of a log that was read; empty: it held none.
  struct Mark {
    std::string id, created;
    friend bool operator==(const Mark&, const Mark&) = default;
  };
  std::map<std::string, Mark> marks;  ///< by log; what one holds at first contact is history
  std::vector<Kept> kept;             ///< oldest first

  /// Total: what is no such text is a mark that has met nothing.
  static EventLogCursor parse(const std::string& text);
  std::string str() const;

  /// Answers whether there was anything of weight among what is new.
  bool take(const EventLog& log, WallTime now);
  /// Events as they were told; those that are known already (told again after a new connection, or
  /// in the log) are left out.
  bool takeEvents(const std::vector<LogEntry>& events, WallTime now);

 private:
  bool takeOne(const std::string& name, const EventLog& log, WallTime now);
  bool isKept(const LogEntry& entry, WallTime now, bool as_event);
  void keep(const LogEntry& entry, WallTime now, bool from_event);
};

}  // namespace muster::bmc
