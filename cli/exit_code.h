// SPDX-License-Identifier: Apache-2.0
// How every command ends.
#pragma once

#include "base/result.h"

namespace muster::cli {

/// Exit codes of the program.
enum ExitCode { kOk = 0, kFailed = 1, kUsage = 2, kWorkLeft = 3 };

/// Prints the error the way all commands do and answers kFailed.
int report(const Error& error);

}  // namespace muster::cli
