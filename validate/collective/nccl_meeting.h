// SPDX-License-Identifier: Apache-2.0
// How the processes of a group come to one NCCL id: the first one makes it and hands it out at the
// job's meeting place.
//
// Not by NCCL_COMM_ID: with that, NCCL wants an interface in the very subnet of the meeting place
// on every host, and fails on all others where racks have subnets of their own.
#pragma once

#include "validate/collective/collective.h"

#include <functional>

namespace muster::collective {

/// `reached_by` is told this host's address on the way to the others, before `make` runs here or
/// the answer is given; not called where one process has all ranks. `make`: only in the process of
/// rank 0, once all others have come. Errors: Timeout (somebody did not come, or rank 0's process
/// has not answered), Conflict (somebody means another job), Unavailable, those of `make`
Result<std::string> meetForId(const Job& job,
                              const std::function<void(const std::string& own_address)>& reached_by,
                              const std::function<Result<std::string>()>& make);

/// Tells NCCL to use the interface that has this address, unless the site has chosen one
/// (NCCL_SOCKET_IFNAME).
void useInterfaceOf(const std::string& address);

}  // namespace muster::collective
