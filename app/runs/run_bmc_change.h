// SPDX-License-Identifier: Apache-2.0
// The change of BMCs' passwords or certificates as a run. It takes no node out of work: each is
// held for as long as its BMC is asked, one goes first, then some at a time, and several failures
// stop the rest. Whose BMC has it is kept in the row, and of passwords by what is remembered of the
// BMC, so that one that was killed goes on with the others. docs/adr/0407. Internal to app/.
#pragma once

#include "app/runs/run_kind.h"

namespace muster::app {

const RunKindRules& bmcPasswordRules();
const RunKindRules& bmcCertificateRules();

}  // namespace muster::app
