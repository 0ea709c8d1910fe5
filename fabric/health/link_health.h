// SPDX-License-Identifier: Apache-2.0
// What the cables of a whole fabric do in a window of time, both ends of each together.
#pragma once

#include "base/async/task.h"
#include "base/clock.h"
#include "base/io/process.h"
#include "fabric/options.h"
#include "fabric/topology/topology.h"
#include "wire/links/counter_text.h"
#include "wire/links/transceiver.h"
#include "wire/links/verdict.h"

namespace muster::fabric {

/// Every port's counters, with when they were read: the first one not before `began`, the last one
/// not after `ended` (seconds of one clock that never goes back).
struct FabricReading {
  links::ReadingsByGuid ports;
  double began = 0, ended = 0;
};

struct LinkVerdict {
  Link link;
  links::Grade grade = links::Grade::Good;
  struct End {
    Port port;
    links::EndVerdict verdict;
  };
  std::vector<End> ends;    ///< a, b
  std::string transceiver;  ///< "Mellanox MCP1650-H003E26 MT2150VS01234"; empty: not known

  /// All that is said of it, the worst first: "leaf-su1-r0 port 5: 3 times down".
  std::vector<std::string> texts(links::Grade at_least) const;
  std::string advice() const;  ///< for its worst complaint; empty: nothing is to be done
};

struct LinkHealthReport {
  std::string fabric;
  links::Window window;
  std::vector<LinkVerdict> links;  ///< the worst first, then by place
  std::vector<std::string>
      hints;          ///< "all of leaf-su1-r0's 12 cables have errors: look at the device"
  std::string error;  ///< why there is no answer

  std::size_t count(links::Grade grade) const;
  static constexpr int kGood = 0, kBad = 1, kNoAnswer = 2;
  /// Warnings are good enough; unproven is no answer.
  int exitCode() const;
};

/// Serial numbers by port: what a technician needs to find the cable. Errors: InvalidInput with
/// line number
using Transceivers = std::map<Port, std::string>;
/// CSV with the columns device, port, serial, and vendor and part where they are known.
Result<Transceivers> parseTransceivers(std::string_view csv);

/// Pure. A link of `before` that `after` has no more is bad; what a port does not count is
/// unproven. Where no counter at all has moved there is no answer: reading them sends packets.
LinkHealthReport evaluateLinks(const Topology& before, const Topology& after,
                               const FabricReading& first, const FabricReading& second,
                               const links::Limits& limits = {},
                               const Transceivers& transceivers = {});
/// perfquery names ports by LID. What no device of the topology has is left out.
links::ReadingsByGuid byGuid(const links::ReadingsByLid& readings, const Topology& topology);
/// A file of either tool. Errors: Corrupt
Result<links::ReadingsByGuid> parseReadings(std::string_view text, const Topology& topology);

/// Reads, waits, reads again. The load is the caller's business.
/// Errors: never; a fabric that does not answer is in the report
Async<LinkHealthReport> linkHealth(io::ProcessRunner& processes, Clock& clock,
                                   FabricOptions options, std::chrono::milliseconds window,
                                   links::Limits limits, Transceivers transceivers);

std::string toText(const LinkHealthReport& report, bool all = false);
std::string toJson(const LinkHealthReport& report);
std::string toPrometheus(const LinkHealthReport& report);

}  // namespace muster::fabric
