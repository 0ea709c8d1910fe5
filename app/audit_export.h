// SPDX-License-Identifier: Apache-2.0
// Takes the signed head of the audit log out of the machine's reach: a line to syslog (journald
// reads it too) and to muster's own log.
#pragma once

#include "base/async/task.h"
#include "base/io/crypto.h"
#include "lifecycle/store/store.h"

#include <chrono>

namespace muster::app {

inline constexpr std::chrono::minutes kAuditExportInterval{5};  ///< of `muster monitor`

/// Effect: the store remembers the head too. A failure is told in the log and stops nothing: what
/// was done is done. Source: syslog(3), facility authpriv, priority notice, program "muster"
void exportAuditHead(lifecycle::Store& store, const io::SigningKey& audit_key, WallTime now);

/// For ever, at the interval: so that nobody can cut the log's end off unseen.
Task<void> exportAuditHeads(lifecycle::Store& store, const io::SigningKey& audit_key, Clock& clock);

}  // namespace muster::app
