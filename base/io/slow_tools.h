// SPDX-License-Identifier: Apache-2.0
// Programs, in a place that is slow.
#pragma once

#include "base/io/process.h"
#include "base/limits.h"

namespace muster::io {

/// `runner`, with the time that each program has at the most following the clock's slowness. The
/// clock must outlive it.
std::unique_ptr<ProcessRunner> slowTools(std::unique_ptr<ProcessRunner> runner, const Clock& clock);

}  // namespace muster::io
