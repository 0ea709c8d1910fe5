// SPDX-License-Identifier: Apache-2.0
// Drives the targets of the program's table by mutations, one after the other.
//
//   mutation_fuzz CORPUS SECONDS [TARGET…]     MUSTER_FUZZ_SEED: another order
#include <fmt/format.h>

#include <cstdlib>

#include "tests/fuzz/mutation_driver.h"

namespace muster::fuzz {
namespace {

constexpr unsigned long long kDefaultSeed = 20'260'101;

int run(int count, char** arguments) {
  if (count < 3) return fmt::print(stderr, "mutation_fuzz CORPUS SECONDS [TARGET…]\n"), 2;
  std::vector<Target> targets;
  for (int i = 3; i < count; ++i) {
    const auto* target = findTarget(arguments[i]);
    if (!target) return fmt::print(stderr, "no target {}\n", arguments[i]), 2;
    targets.push_back(*target);
  }
  if (targets.empty()) targets = allTargets();
  const char* given = std::getenv("MUSTER_FUZZ_SEED");
  const auto seed = given ? std::strtoull(given, nullptr, 10) : kDefaultSeed;
  const std::chrono::milliseconds all(std::strtoll(arguments[2], nullptr, 10) * 1000);
  bool good = true;
  for (const auto& target : targets)
    good = tryTarget(target, arguments[1], all / targets.size(), seed) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace muster::fuzz

int main(int count, char** arguments) { return muster::fuzz::run(count, arguments); }
