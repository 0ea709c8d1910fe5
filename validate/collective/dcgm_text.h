// SPDX-License-Identifier: Apache-2.0
// The table that `dcgmi diag` prints without -j.
#pragma once

#include "validate/collective/dcgm.h"

namespace muster::collective {

/// Errors: Corrupt
Result<DcgmReport> parseDcgmTable(std::string_view output);

}  // namespace muster::collective
