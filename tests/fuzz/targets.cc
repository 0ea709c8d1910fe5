// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <cstdio>
#include <cstdlib>

namespace muster::fuzz {

const Target* findTarget(std::string_view name) {
  static const auto all = allTargets();
  for (const auto& target : all)
    if (target.name == name) return &target;
  return nullptr;
}

void require(bool promise, const char* what) {
  if (promise) return;
  std::fprintf(stderr, "broken promise: %s\n", what);
  std::abort();
}

}  // namespace muster::fuzz
