// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_code.h"

#include <iostream>

namespace muster::cli {

int report(const Error& error) {
  std::cerr << "muster: " << toString(error.code()) << ": " << error.str() << '\n';
  return kFailed;
}

}  // namespace muster::cli
