// One cuBLASLt product: C = A·Bᵀ with k fastest in A and B, C column-major. The fastest of the offered algorithms, never one that splits
// the sum over k: then the same product has the same bits every time, on every GPU of a model with the same library.
#pragma once

#include "validate/burn/cuda/formats.h"
#include "validate/burn/cuda/handles.h"

namespace muster::burn::cuda {

class Matmul {
 public:
  /// Times the algorithms on the operands at hand. Errors: Internal when the library has none for this format
  static Result<Matmul> make(cublasLtHandle_t handle, Dtype dtype, int n, const void* a, const void* b, void* c, cudaStream_t stream);
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
