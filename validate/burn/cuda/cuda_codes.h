// SPDX-License-Identifier: Apache-2.0
// CUDA's and cuBLASLt's codes as errors.
#pragma once

#include "base/result.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

namespace muster::burn::cuda {

inline Result<void> ok(cudaError_t code, const char* call) {
  if (code == cudaSuccess) return {};
  return fail(code == cudaErrorMemoryAllocation ? ErrorCode::Unavailable : ErrorCode::Internal,
              fmt::format("{}: {}", call, cudaGetErrorString(code)));
}
inline Result<void> ok(cublasStatus_t code, const char* call) {
  if (code == CUBLAS_STATUS_SUCCESS) return {};
  return fail(ErrorCode::Internal, fmt::format("{}: {}", call, cublasLtGetStatusString(code)));
}
/// The kernel that was launched last, and nothing before it, went wrong at its launch.
inline Result<void> launched(const char* kernel) { return ok(cudaGetLastError(), kernel); }

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};

}  // namespace muster::burn::cuda
