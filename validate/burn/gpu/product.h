// SPDX-License-Identifier: Apache-2.0
// One product, by a vendor's library or by a kernel of ours where there is none: C = A·Bᵀ with k
// fastest in A and B, C column-major. Never by an algorithm that splits the sum over k: then the
// same product has the same bits every time.
#pragma once

#include "validate/burn/gpu/kernels.h"

#include <memory>

namespace muster::burn::gpu {

class Runtime;

/// Which of the offered algorithms. They add in different orders, so bits are comparable between
/// GPUs only when all use the same one: the library's first, which follows from model and library
/// alone. Which is fastest may differ from one GPU to the next.
enum class Choice { Fastest, SameOnAll };

class Product {
 public:
  virtual ~Product() = default;
  /// Algorithms that the library offers for it, best first by its own opinion.
  virtual int algorithms() const = 0;
  virtual void use(int algorithm) = 0;
  /// Of formats with scales, before the first run; both are borrowed.
  virtual Result<void> setScales(const void* a, const void* b) = 0;
  virtual Result<void> run(const void* a, const void* b, void* c, StreamHandle stream) = 0;
};

/// With a sparse A, by a kernel of ours: no library of a toolkit has one. `places`: of A's kept
/// values; borrowed.
std::unique_ptr<Product> makeSparseProduct(Kernels& kernels, const std::uint32_t* places, int n);

/// Tries the algorithms on the operands at hand and leaves the product with the chosen one.
/// Errors: Internal when none works
Result<void> chooseAlgorithm(const Runtime& runtime, Product& product, Choice choice, const void* a,
                             const void* b, void* c, StreamHandle stream);

}  // namespace muster::burn::gpu
