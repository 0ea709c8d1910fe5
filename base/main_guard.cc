// SPDX-License-Identifier: Apache-2.0
#include "base/main_guard.h"

#include "base/printable.h"

#include <fmt/format.h>

#include <exception>
#include <iostream>
#include <string>

namespace muster {

int tellBroken(std::string_view program) {
  std::string what = "an exception without words";
  try {
    throw;
  } catch (const std::exception& error) {
    what = error.what();
  } catch (...) {
  }
  std::cerr << printable(fmt::format("{}: internal error: {}. What was committed stays; the same "
                                     "command goes on from there",
                                     program, what))
            << std::endl;
  return kBrokenExit;
}

}  // namespace muster
