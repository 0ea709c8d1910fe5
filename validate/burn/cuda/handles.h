// SPDX-License-Identifier: Apache-2.0
// CUDA's and cuBLASLt's handles with owners, and their codes as errors.
#pragma once

#include "base/result.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <memory>

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

template <auto kFree>
struct Freed {
  template <class T>
  void operator()(T* handle) const {
    kFree(handle);
  }
};
using Stream = std::unique_ptr<CUstream_st, Freed<cudaStreamDestroy>>;
using Event = std::unique_ptr<CUevent_st, Freed<cudaEventDestroy>>;
using DeviceMemory = std::unique_ptr<void, Freed<cudaFree>>;
using PinnedMemory = std::unique_ptr<void, Freed<cudaFreeHost>>;
using BlasHandle = std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Freed<cublasLtDestroy>>;
using MatmulDesc =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, Freed<cublasLtMatmulDescDestroy>>;
using MatrixLayout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                     Freed<cublasLtMatrixLayoutDestroy>>;
using Preference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                   Freed<cublasLtMatmulPreferenceDestroy>>;

template <class T>
T* as(const DeviceMemory& memory) {
  return static_cast<T*>(memory.get());
}

inline Result<Stream> makeStream() {
  cudaStream_t stream = nullptr;
  TRY_OK(
      ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
  return Stream(stream);
}
inline Result<Event> makeEvent() {
  cudaEvent_t event = nullptr;
  TRY_OK(ok(cudaEventCreate(&event), "cudaEventCreate"));
  return Event(event);
}
inline Result<DeviceMemory> allocate(std::uint64_t bytes) {
  void* memory = nullptr;
  if (auto made = ok(cudaMalloc(&memory, bytes), "cudaMalloc"); !made) {
    cudaGetLastError();  // it is told here; the next call begins clean
    return fail(
        std::move(made.error()).within(fmt::format("{} MiB of device memory", bytes >> 20)));
  }
  return DeviceMemory(memory);
}
/// The kernel that was launched last, and nothing before it, went wrong at its launch.
inline Result<void> launched(const char* kernel) { return ok(cudaGetLastError(), kernel); }

/// Seconds that the stream took between two points.
struct Span {
  Event begin, end;
  static Result<Span> make() {
    TRY(begin, makeEvent());
    TRY(end, makeEvent());
    return Span{std::move(begin), std::move(end)};
  }
  Result<void> start(cudaStream_t stream) const {
    return ok(cudaEventRecord(begin.get(), stream), "cudaEventRecord");
  }
  Result<double> stop(cudaStream_t stream) const {
    TRY_OK(record(stream));
    TRY_OK(ok(cudaEventSynchronize(end.get()), "cudaEventSynchronize"));
    return seconds();
  }
  /// The second point, without waiting for it.
  Result<void> record(cudaStream_t stream) const {
    return ok(cudaEventRecord(end.get(), stream), "cudaEventRecord");
  }
  /// When the stream has passed both.
  Result<double> seconds() const {
    float milliseconds = 0;
    TRY_OK(ok(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "cudaEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e-3;
  }
};

}  // namespace muster::burn::cuda
