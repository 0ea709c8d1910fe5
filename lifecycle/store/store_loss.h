// SPDX-License-Identifier: Apache-2.0
// Whether the files of a store were deleted or replaced under the process that has it open
// (lifecycle/store/sql/store_files.h).
#pragma once

#include "base/result.h"
#include "lifecycle/store/store.h"

#include <optional>

namespace muster::lifecycle {

/// Beside a SQLite database, written by the controller once the store is there: where it is, a
/// store without content is not a new one.
inline constexpr std::string_view kMarkOfUse = "controller-id";

/// Why this process can never write into its store again; nothing while the store is whole, and for
/// stores that are no files of this machine. Any thread may ask; it takes no lock of the store.
/// Errors: Unavailable, not to be tried again: the process has to end
std::optional<Error> storeLoss(const Store& store);

}  // namespace muster::lifecycle
