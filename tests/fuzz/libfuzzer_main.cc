// SPDX-License-Identifier: Apache-2.0
// Drives one target of the table by libFuzzer. MUSTER_FUZZ_TARGET names it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "base/log.h"
#include "tests/fuzz/targets.h"

namespace {

const muster::fuzz::Target* chosen = nullptr;

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* name = std::getenv("MUSTER_FUZZ_TARGET");
  chosen = name ? muster::fuzz::findTarget(name) : nullptr;
  if (chosen) return 0;
  std::fprintf(stderr, "MUSTER_FUZZ_TARGET is one of:");
  for (const auto& target : muster::fuzz::allTargets())
    std::fprintf(stderr, " %s", std::string(target.name).c_str());
  std::fprintf(stderr, "\n");
  std::exit(2);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > chosen->max_input_bytes) return -1;
  chosen->run({reinterpret_cast<const char*>(data), size});
  return 0;
}
