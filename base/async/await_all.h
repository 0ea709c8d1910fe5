// SPDX-License-Identifier: Apache-2.0
// Several coroutines at once, awaited together.
#pragma once

#include "base/async/task.h"

#include <vector>

namespace muster::async {

/// Runs all of them at once and awaits them all; then throws the first exception that one of them
/// threw, if any.
Task<void> awaitAll(std::vector<Task<void>> tasks);

}  // namespace muster::async
