// SPDX-License-Identifier: Apache-2.0
// HIP's runtime and hipBLASLt on the host, as a shared library with their exported names: memory is
// memory, products are made by definition, kernels are looked up in the real code objects, take
// their arguments as the metadata there says, and are done by the host.
#pragma once

#include <cstdint>
#include <string>

namespace muster::test {

struct FakeHip {
  int gpus = 1;
  std::uint64_t free_bytes = 64u << 20;  ///< what hipMalloc gives in all
  std::uint64_t taken = 0;               ///< bytes in use
  int handles = 0;                       ///< streams, events, modules, layouts, … in use
  int products = 0;                      ///< made so far
  int launches = 0;                      ///< of kernels
  std::string architecture = "gfx942:sramecc+:xnack-";
  int blas_version = 1'000'00;  ///< 1.0.0
  bool no_algorithm = false;
  int slow_algorithm = 0;  ///< of 1 and 2, which work; their sums differ in the last bits
  int last_algorithm = 0;  ///< that made a product
  bool stalled = false, lost = false;
};
FakeHip& fakeHip();

}  // namespace muster::test
