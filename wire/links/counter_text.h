// SPDX-License-Identifier: Apache-2.0
// Counters as the tools print them. Pure.
#pragma once

#include "wire/links/counters.h"

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace muster::links {

/// Ports by what names their device.
using ReadingsByGuid =
    std::map<std::pair<std::string, int>, PortReading>;  ///< node GUID ("0x…16 digits")
using ReadingsByLid = std::map<std::pair<int, int>, PortReading>;

/// What perfquery printed, one port or many, with or without -x: where a port is there both ways
/// the 64-bit counters stand. Errors: Corrupt with line number (no counters, one port twice: two
/// readings are two files; a last line without its end)
Result<ReadingsByLid> parsePerfquery(std::string_view text);

/// What `ibqueryerrors --threshold-file EMPTY` and `ibqueryerrors --counters` printed of one
/// fabric: the first lists only counters over the threshold, so what it does not list is 0. The two
/// may be one text. Errors: Corrupt (one of them is not there, is there twice, did not end with its
/// summary, lists fewer than the summary counts, was told thresholds or counters to leave out, or
/// had ports that did not answer; the two are of different numbers of nodes)
/// Source: rdma-core infiniband-diags/ibqueryerrors.c, print_summary
Result<ReadingsByGuid> parseQueryErrors(std::string_view errors, std::string_view data);

/// `value`: the number in a file of /sys/class/infiniband/DEVICE/ports/N/counters; nullopt: it is
/// not there.
PortReading readSysfs(
    const std::function<std::optional<std::uint64_t>(std::string_view file)>& value);

}  // namespace muster::links
