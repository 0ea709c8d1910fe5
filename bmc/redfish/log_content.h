// SPDX-License-Identifier: Apache-2.0
// What a Redfish log is about, by its entries: names and declared types of logs differ between
// vendors and mislead (a Lenovo's "SEL" links no entries, iDRAC and AMI declare SEL for logs that
// stay empty), entries do not.
#pragma once

#include "bmc/redfish/json_view.h"
#include "bmc/roles.h"

#include <optional>
#include <span>
#include <string_view>

namespace muster::bmc {

/// Entries that fit say what their log holds. Rows are asked in order, the first that fits decides.
struct LogContentRow {
  std::string_view property;  ///< path in the LogEntry
  std::string_view glob;      ///< against its text
  bool hardware = false;      ///< else: logins, dumps, POST codes, a journal
  std::string_view source;
};
std::span<const LogContentRow> logContentRows();

/// Whether an entry reports what happened to the machine's hardware. Nothing: no row knows it.
std::optional<bool> isHardwareEntry(const Json& entry);

/// How much a log looks like the hardware's by its type and Id, which count while its entries do
/// not say. 0: not; kDeclared: its type, or a name that nothing else has.
int declaredScore(const Json& log_service);
inline constexpr int kDeclared = 2;

/// Without a Message its MessageId says what happened.
LogEntry logEntryOf(const Json& entry);

}  // namespace muster::bmc
