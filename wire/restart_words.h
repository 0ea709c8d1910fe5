// SPDX-License-Identifier: Apache-2.0
// How a task's progress begins once it has ordered a restart of the machine: it ends with the
// machine, not by itself.
#pragma once

#include <string_view>

namespace muster::wire {

inline constexpr std::string_view kRestarting = "restarting: ";

}  // namespace muster::wire
