// SPDX-License-Identifier: Apache-2.0
// The last catch of a program: what nobody expected is told in one line and is an exit code, not an
// abort.
#pragma once

#include <string_view>

namespace muster {

inline constexpr int kBrokenExit =
    70;  ///< EX_SOFTWARE of sysexits(3): the program itself is at fault

/// Tells the exception that is being handled on standard error; answers kBrokenExit. Only inside a
/// catch.
int tellBroken(std::string_view program);

/// Runs the program's work; answers its exit code, or kBrokenExit when an exception came out.
template <class Work>
int guardedMain(std::string_view program, Work&& work) {
  try {
    return work();
  } catch (...) {
    return tellBroken(program);
  }
}

}  // namespace muster
