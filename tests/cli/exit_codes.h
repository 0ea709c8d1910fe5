// SPDX-License-Identifier: Apache-2.0
// What muster's exit codes must be, as scripts of operators know them (cli/exit_code.h).
#pragma once

namespace muster::test {

inline constexpr int kOk = 0, kFailed = 1, kUsage = 2, kWorkLeft = 3;

}  // namespace muster::test
