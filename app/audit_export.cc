// SPDX-License-Identifier: Apache-2.0
#include "app/audit_export.h"

#include "base/log.h"
#include "lifecycle/audit/head.h"

#include <syslog.h>

namespace muster::app {

void exportAuditHead(lifecycle::Store& store, const io::SigningKey& audit_key, WallTime now) {
  const auto head = lifecycle::signedHead(store, audit_key, now);
  if (!head)
    return logWarning("audit", "the head of the log could not be signed: {}", head.error().str());
  const auto text = lifecycle::toText(*head);
  logInfo("audit", "{}", text);
  ::openlog("muster", LOG_PID | LOG_NDELAY, LOG_AUTHPRIV);
  ::syslog(LOG_NOTICE, "%s", text.c_str());
  ::closelog();
  if (const auto kept = lifecycle::keepHead(store, *head); !kept)
    logWarning("audit", "the store could not remember the signed head: {}", kept.error().str());
}

Task<void> exportAuditHeads(lifecycle::Store& store, const io::SigningKey& audit_key,
                            Clock& clock) {
  while (true) {
    exportAuditHead(store, audit_key, clock.now());
    co_await clock.sleep(kAuditExportInterval);
  }
}

}  // namespace muster::app
