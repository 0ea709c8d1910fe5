// SPDX-License-Identifier: Apache-2.0
#include "wire/links/counters.h"

#include <algorithm>

namespace muster::links {

namespace {

using enum Counter;

constexpr std::array<CounterRow, kCounters> kRows = {{
    {SymbolErrors, "SymbolErrorCounter", "symbol_error", 16, Meaning::Error, "symbol errors"},
    {Recoveries, "LinkErrorRecoveryCounter", "link_error_recovery", 8, Meaning::Error,
     "link recoveries"},
    {Downs, "LinkDownedCounter", "link_downed", 8, Meaning::Error, "times down"},
    {ReceiveErrors, "PortRcvErrors", "port_rcv_errors", 16, Meaning::Error,
     "damaged packets received"},
    {RemoteErrors, "PortRcvRemotePhysicalErrors", "port_rcv_remote_physical_errors", 16,
     Meaning::Drop, "packets damaged before they came here"},
    {Discards, "PortXmitDiscards", "port_xmit_discards", 16, Meaning::Drop,
     "packets that could not be sent"},
    {IntegrityErrors, "LocalLinkIntegrityErrors", "local_link_integrity_errors", 4, Meaning::Error,
     "bursts of link errors"},
    {OverrunErrors, "ExcessiveBufferOverrunErrors", "excessive_buffer_overrun_errors", 4,
     Meaning::Error, "buffer overruns"},
    {SentConstraints, "PortXmitConstraintErrors", "port_xmit_constraint_errors", 8, Meaning::Drop,
     "packets of a foreign partition not sent"},
    {ReceivedConstraints, "PortRcvConstraintErrors", "port_rcv_constraint_errors", 8, Meaning::Drop,
     "packets of a foreign partition not taken"},
    {Waits, "PortXmitWait", "port_xmit_wait", 32, Meaning::Wait, "ticks waited"},
    {SentWords, "PortXmitData", "port_xmit_data", 32, Meaning::Load, "words sent"},
    {ReceivedWords, "PortRcvData", "port_rcv_data", 32, Meaning::Load, "words received"},
    {SentPackets, "PortXmitPkts", "port_xmit_packets", 32, Meaning::Load, "packets sent"},
    {ReceivedPackets, "PortRcvPkts", "port_rcv_packets", 32, Meaning::Load, "packets received"},
}};

/// A 64-bit counter passes this value in an instant; one of PortCounters stays there.
bool isFull(const CounterRow& row, std::uint64_t value) {
  return value == (std::uint64_t{1} << row.bits) - 1;
}

}  // namespace

std::span<const CounterRow, kCounters> counterRows() { return kRows; }

bool PortReading::empty() const {
  return std::none_of(values.begin(), values.end(),
                      [](const auto& value) { return value.has_value(); });
}

bool PortGrowth::isNone() const {
  return !was_cleared && std::all_of(values.begin(), values.end(), [](const auto& value) {
    return !value || value->at_least == 0;
  });
}

PortGrowth growth(const PortReading& before, const PortReading& after) {
  PortGrowth out;
  for (const auto& row : kRows)
    if (const auto &old = before[row.counter], &now = after[row.counter]; old && now && *now < *old)
      out.was_cleared = true;
  for (const auto& row : kRows) {
    const auto &old = before[row.counter], &now = after[row.counter];
    out.once[static_cast<std::size_t>(row.counter)] = old.has_value() != now.has_value();
    if (!old || !now) continue;
    const bool full = isFull(row, *now);
    out.values[static_cast<std::size_t>(row.counter)] =
        Growth{*now < *old ? *now : *now - *old, !full && !out.was_cleared, full};
  }
  return out;
}

}  // namespace muster::links
