// SPDX-License-Identifier: Apache-2.0
// Whether an answer is what was asked for. A login page with status 200, a body that was cut off, a
// collection without its members: such an answer is no answer, and never an empty one.
#pragma once

#include "base/result.h"
#include "bmc/redfish/json_view.h"

#include <string>

namespace muster::bmc {

struct RedfishReply;

/// Of a GET that was answered with 2xx. Errors: Unavailable (200 without a JSON object)
Result<void> expectResource(const RedfishReply& reply, const std::string& path);
/// The members of a collection, as they are listed. Errors: Unavailable (Members is missing or is
/// no list). Source: DSP0266 9.6.9, Members is required
Result<Json*> membersOf(RedfishReply& reply, const std::string& path);

}  // namespace muster::bmc
