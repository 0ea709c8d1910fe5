// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace muster::test {

inline constexpr int kFakeUnits = 4;  ///< SMs or CUs of each GPU of the tests' runtimes

}  // namespace muster::test
