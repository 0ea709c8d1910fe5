// SPDX-License-Identifier: Apache-2.0
// What the growth of its counters over a window says of a link. Pure.
//
// Fail closed: a link is good only where errors *and* their absence are proven. A window that is
// too short, a counter that is full or was cleared, a port that does not count: unproven, which
// passes no gate.
#pragma once

#include "wire/links/bit_errors.h"
#include "wire/links/counters.h"

#include <string>
#include <vector>

namespace muster::links {

/// Between two readings that each took a while: the counters grew for at least `shortest` and at
/// most `longest`.
struct Window {
  double shortest_seconds = 0, longest_seconds = 0;
};

struct Limits {
  double ber_bad = 1e-12;   ///< Source: InfiniBand Architecture Specification, volume 2
  double ber_warn = 1e-15;  ///< Source: NVIDIA's factory limit for cables
  double confidence = 0.95;
  double min_load = 0;  ///< share of the line rate, in the busier direction; below it nothing is
                        ///< proven under load
};

enum class Grade {
  Good,
  Warning,
  Unproven,
  Bad
};  ///< in order: the worst one of its ends is the cable's
std::string_view toString(Grade grade);  ///< "good", "warning", "unproven", "bad"

struct Complaint {
  Grade grade = Grade::Good;  ///< Good: for information
  std::string kind;  ///< "bit-errors", "flaps", "recoveries", "receive-errors", "lost-elsewhere",
                     ///< "congested", "ber-unproven", …
  std::string text;
};

/// Of one end: the signal that it receives, what it sends and cannot.
struct EndVerdict {
  Grade grade = Grade::Good;
  std::vector<Complaint> complaints;  ///< the worst first
  std::optional<BerBounds> ber;       ///< high is 1 where not every error is known
  std::optional<double> load;         ///< share of the line rate, in the busier direction
  std::uint64_t waits = 0;            ///< ticks (their length is the device's own affair)
};
/// `width_speed` in ibnetdiscover's spelling.
EndVerdict evaluateEnd(const PortGrowth& grown, Window window, std::string_view width_speed,
                       const Limits& limits = {});

/// Seconds that an error-free link of this rate must be watched until its BER is proven below
/// `limits.ber_bad`. nullopt: unknown rate
std::optional<double> secondsToProve(std::string_view width_speed, const Limits& limits = {});

/// What to do about a complaint of this kind; empty: nothing.
std::string_view adviceFor(std::string_view kind);

}  // namespace muster::links
