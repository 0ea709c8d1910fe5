// SPDX-License-Identifier: Apache-2.0
#include "bmc/redfish/redfish_bmc.h"

namespace muster::bmc {

/// A BMC that cannot even end a session has lost it already: the next request logs in.
Async<void> RedfishBmc::newSession() {
  resources_.forget();
  inventory_.forgetMacs();
  (void)co_await resources_.session().close();
  co_return Result<void>();
}

}  // namespace muster::bmc
