// SPDX-License-Identifier: Apache-2.0
// One cuBLASLt product: C = A·Bᵀ with k fastest in A and B, C column-major. Never by an algorithm
// that splits the sum over k: then the same product has the same bits every time.
#pragma once

#include "validate/burn/cuda/handles.h"
#include "validate/burn/device.h"
#include "validate/burn/float_formats.h"

namespace muster::burn::cuda {

/// Which of the offered algorithms. They add in different orders, so bits are comparable between
/// GPUs only when all use the same one: the library's first, which follows from model and library
/// alone. Which is fastest may differ from one GPU to the next.
enum class Choice { Fastest, SameOnAll };

class Matmul {
 public:
  /// Tries the algorithms on the operands at hand. Errors: Internal when the library has none for
  /// this format
  static Result<Matmul> make(cublasLtHandle_t handle, Dtype dtype, int n, Choice choice,
                             const void* a, const void* b, void* c, cudaStream_t stream);
  Result<void> run(const void* a, const void* b, void* c, cudaStream_t stream) const;

 private:
  cublasLtHandle_t handle_ = nullptr;
  Dtype dtype_ = Dtype::Fp32;
  MatmulDesc desc_;
  MatrixLayout operand_, output_;
  DeviceMemory workspace_;
  cublasLtMatmulAlgo_t algorithm_{};
};

}  // namespace muster::burn::cuda
