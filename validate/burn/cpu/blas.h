// SPDX-License-Identifier: Apache-2.0
// OpenBLAS by dlopen where the node has it, muster's own kernel where not: nodes need no package to
// be tested.
#pragma once

#include "base/result.h"

#include <mutex>
#include <string>

namespace muster::burn::cpu {

/// Products on the calling thread alone. C = A·Bᵀ, row-major, n × n.
class Blas {
 public:
  /// libopenblas.so.0, or the file that MUSTER_OPENBLAS names ("none": the own kernel).
  static const Blas& ofThisHost();
  /// "OpenBLAS 0.3.21 … SkylakeX" or "muster".
  const std::string& name() const { return name_; }
  /// Before products on so many threads at once. OpenBLAS takes memory of its own for each, and
  /// asks for ever where there is none. Errors: Unavailable (there is none)
  Result<void> reserve(std::size_t threads) const;
  void multiply(const float* a, const float* b, float* c, int n) const;
  void multiply(const double* a, const double* b, double* c, int n) const;

 private:
  Blas();
  using Sgemm = void (*)(int, int, int, int, int, int, float, const float*, int, const float*, int,
                         float, float*, int);
  using Dgemm = void (*)(int, int, int, int, int, int, double, const double*, int, const double*,
                         int, double, double*, int);
  std::string name_ = "muster";
  Sgemm sgemm_ = nullptr;
  Dgemm dgemm_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::size_t reserved_ = 0;  ///< threads; OpenBLAS keeps what it has taken
};

}  // namespace muster::burn::cpu
