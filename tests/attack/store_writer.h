// SPDX-License-Identifier: Apache-2.0
// The writer of store_attack_test.cc, as a process of its own: `attack_test --writer FOLDER`.
#pragma once

#include <string>

namespace muster::attack {

/// Writes to the store in this folder and says the number of each write once it was answered.
int writeUntilKilled(const std::string& folder);

}  // namespace muster::attack
