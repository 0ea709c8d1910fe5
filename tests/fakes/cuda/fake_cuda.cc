// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/fake_cuda.h"

#include "tests/fakes/gpu/fake_units.h"
#include "tests/fakes/gpu/narrow_floats.h"

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

// Opaque to users, so ours to fill.
struct CUstream_st {};
struct CUevent_st {
  std::chrono::steady_clock::time_point at;
};

namespace {

using muster::test::fakeCuda;
namespace narrow = muster::test::narrow;

/// Ranks of a collective are threads.
std::mutex& books() {
  static std::mutex mutex;
  return mutex;
}

std::map<void*, std::uint64_t>& blocks() {
  static std::map<void*, std::uint64_t> all;
  return all;
}

thread_local cudaError_t t_last_error = cudaSuccess;

struct Desc {
  cublasComputeType_t compute;
  std::int32_t transpose_a = 0, transpose_b = 0;
  std::int32_t scale_mode_a = 0, scale_mode_b = 0;
  const std::uint8_t *scales_a = nullptr, *scales_b = nullptr;
};
struct Layout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};

template <class T>
T* make(T value) {
  const std::scoped_lock lock(books());
  ++fakeCuda().handles;
  return new T(value);
}
template <class T>
void drop(void* handle) {
  const std::scoped_lock lock(books());
  --fakeCuda().handles;
  delete static_cast<T*>(handle);
}

double valueAt(cudaDataType type, const void* from, std::uint64_t index) {
  switch (type) {
    case CUDA_R_64F:
      return static_cast<const double*>(from)[index];
    case CUDA_R_32F:
      return static_cast<const float*>(from)[index];
    case CUDA_R_16F:
      return narrow::half(static_cast<const std::uint16_t*>(from)[index]);
    case CUDA_R_16BF:
      return narrow::brain(static_cast<const std::uint16_t*>(from)[index]);
    case CUDA_R_8F_E4M3:
      return narrow::e4m3(static_cast<const std::uint8_t*>(from)[index]);
    case CUDA_R_8F_E5M2:
      return narrow::e5m2(static_cast<const std::uint8_t*>(from)[index]);
    case CUDA_R_4F_E2M1:
      return narrow::e2m1(static_cast<const std::uint8_t*>(from)[index / 2] >> (index % 2 * 4));
    case CUDA_R_8I:
      return static_cast<const std::int8_t*>(from)[index];
    default:
      return std::nan("");
  }
}

constexpr int kSlowTurns = 16;

/// The scale of block `block` of line `line`: 128 lines by 4 blocks are a tile of 32 by 16 bytes,
/// in which 32 lines are 4 columns; tiles lie line of tiles by line of tiles. Source: cuBLAS, "1D
/// Block Scaling Factors Layout", as its picture of a tile has it
double scaleOf(std::int32_t mode, const std::uint8_t* scales, std::uint64_t line,
               std::uint64_t block, std::uint64_t blocks) {
  std::uint64_t tile_row = 0, tile_column = 0;
  while (line >= 128) line -= 128, ++tile_row;
  while (block >= 4) block -= 4, ++tile_column;
  std::uint64_t column = block;
  while (line >= 32) line -= 32, column += 4;
  const auto tiles_before = tile_row * (blocks / 4) + tile_column;
  const auto bits = scales[tiles_before * 32 * 16 + line * 16 + column];
  return mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 ? narrow::e8m0(bits)
                                                          : narrow::e4m3(bits & 0x7f);
}

/// Multiplies what lies along k by its blocks' scales.
void scaleLine(double* values, std::uint64_t n, std::int32_t mode, const std::uint8_t* scales,
               std::uint64_t line) {
  if (!scales) return;
  const std::uint64_t size = mode == CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0 ? 32 : 16;
  for (std::uint64_t k = 0; k < n; ++k)
    values[k] *= scaleOf(mode, scales, line, k / size, n / size);
}

double otherOrder(const double* row, const double* column, std::uint64_t n, cudaDataType_t type) {
  double wide = 0;
  float narrow = 0;
  for (std::uint64_t k = n; k-- > 0;)
    wide += row[k] * column[k],
        narrow += static_cast<float>(row[k]) * static_cast<float>(column[k]);
  return type == CUDA_R_32F ? static_cast<double>(narrow) : wide;
}

}  // namespace

namespace muster::test {
FakeCuda& fakeCuda() {
  static FakeCuda fake;
  return fake;
}
}  // namespace muster::test

extern "C" {

cudaError_t cudaGetDeviceCount(int* count) { return *count = fakeCuda().gpus, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  return device < fakeCuda().gpus ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  *properties = {};
  std::strcpy(properties->name, "Fake H100");
  properties->multiProcessorCount = muster::test::kFakeUnits;
  properties->sharedMemPerBlockOptin = 64 << 10;
  properties->l2CacheSize = 2 << 20;
  properties->major = fakeCuda().major;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return std::snprintf(text, static_cast<std::size_t>(length), "0000:%02X:00.0", device + 1),
         cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 1, cudaSuccess; }
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return *total = fakeCuda().free_bytes + (2u << 30), *free = *total - fakeCuda().taken,
         cudaSuccess;
}
/// A thread's last error, cleared by reading it. "Not ready" stays there, too, as PyTorch's
/// CUDAEvent::query has met it.
cudaError_t cudaGetLastError() { return std::exchange(t_last_error, cudaSuccess); }
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "out of memory" : "fake error";
}

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const std::scoped_lock lock(books());
  if (fakeCuda().taken + bytes > fakeCuda().free_bytes + (65u << 20))
    return cudaErrorMemoryAllocation;  // the workspace of products comes on top
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  std::memset(*memory, 0xa5, bytes);  // fresh memory holds anything
  fakeCuda().taken += blocks()[*memory] = bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  const std::scoped_lock lock(books());
  fakeCuda().taken -= blocks().at(memory);
  blocks().erase(memory);
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaHostRegister(void*, std::size_t, unsigned) {
  const std::scoped_lock lock(books());
  return ++fakeCuda().handles, cudaSuccess;
}
cudaError_t cudaHostUnregister(void*) {
  const std::scoped_lock lock(books());
  return --fakeCuda().handles, cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemcpyPeerAsync(void* to, int, const void* from, int, std::size_t bytes,
                                cudaStream_t) {
  return std::memcpy(to, from, bytes), cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  return std::memset(to, value, bytes), cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = make(CUstream_st{}), cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return drop<CUstream_st>(stream), cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) {
  if (fakeCuda().lost) return t_last_error = cudaErrorLaunchFailure;
  static thread_local int t_asked = 0;
  const bool busy = fakeCuda().stalled || ++t_asked % (fakeCuda().busy_queries + 1) != 0;
  return busy ? t_last_error = cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = make(CUevent_st{}), cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t event) { return drop<CUevent_st>(event), cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return event->at = std::chrono::steady_clock::now(), cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  return *milliseconds = std::chrono::duration<float, std::milli>(end->at - begin->at).count(),
         cudaSuccess;
}

const char* cublasLtGetStatusString(cublasStatus_t) { return "fake status"; }
cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return *handle = reinterpret_cast<cublasLtHandle_t>(make(0)), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return drop<int>(handle), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute,
                                        cudaDataType_t) {
  return *desc = reinterpret_cast<cublasLtMatmulDesc_t>(make(Desc{compute})), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  return drop<Desc>(desc), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                                              cublasLtMatmulDescAttributes_t what,
                                              const void* value, std::size_t bytes) {
  auto* mine = reinterpret_cast<Desc*>(desc);
  if (what == CUBLASLT_MATMUL_DESC_TRANSA && bytes == 4) std::memcpy(&mine->transpose_a, value, 4);
  if (what == CUBLASLT_MATMUL_DESC_TRANSB && bytes == 4) std::memcpy(&mine->transpose_b, value, 4);
  if (what == CUBLASLT_MATMUL_DESC_A_SCALE_MODE && bytes == 4)
    std::memcpy(&mine->scale_mode_a, value, 4);
  if (what == CUBLASLT_MATMUL_DESC_B_SCALE_MODE && bytes == 4)
    std::memcpy(&mine->scale_mode_b, value, 4);
  if (what == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER && bytes == 8)
    std::memcpy(&mine->scales_a, value, 8);
  if (what == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER && bytes == 8)
    std::memcpy(&mine->scales_b, value, 8);
  return what == CUBLASLT_MATMUL_DESC_FAST_ACCUM && bytes != 1 ? CUBLAS_STATUS_INVALID_VALUE
                                                               : CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          std::uint64_t rows, std::uint64_t columns,
                                          std::int64_t leading) {
  return *layout =
             reinterpret_cast<cublasLtMatrixLayout_t>(make(Layout{type, rows, columns, leading})),
         CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return drop<Layout>(layout), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return *preference = reinterpret_cast<cublasLtMatmulPreference_t>(make(0)), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return drop<int>(preference), CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t,
                                                    cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, std::size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int wanted,
                                              cublasLtMatmulHeuristicResult_t* results,
                                              int* found) {
  *found = fakeCuda().no_algorithm ? 0 : std::min(wanted, 3);
  for (int i = 0; i < *found; ++i) {
    results[i].state = i == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
    results[i].algo.data[0] = static_cast<std::uint64_t>(i);
  }
  return CUBLAS_STATUS_SUCCESS;
}

std::size_t cublasLtGetVersion(void) { return 130100; }

/// op(A)·op(B) by definition, in column-major order as cuBLAS has it. Sums of the formats used here
/// are exact in double; algorithm 2 adds in the width of the output, from the end.
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void*,
                              const void* a, cublasLtMatrixLayout_t a_layout, const void* b,
                              cublasLtMatrixLayout_t b_layout, const void*, const void*,
                              cublasLtMatrixLayout_t, void* c, cublasLtMatrixLayout_t c_layout,
                              const cublasLtMatmulAlgo_t* algorithm, void*, std::size_t,
                              cudaStream_t) {
  const auto& how = *reinterpret_cast<Desc*>(desc);
  const auto &left = *reinterpret_cast<Layout*>(a_layout),
             &right = *reinterpret_cast<Layout*>(b_layout),
             &out = *reinterpret_cast<Layout*>(c_layout);
  if (left.type == CUDA_R_4F_E2M1 && (!how.scales_a || !how.scales_b))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  const auto n = out.rows;
  const auto which = fakeCuda().last_algorithm = static_cast<int>(algorithm->data[0]);
  const auto get = [](const Layout& layout, const void* from, bool transposed, std::uint64_t row,
                      std::uint64_t column) {
    if (transposed) std::swap(row, column);
    return valueAt(layout.type, from, column * static_cast<std::uint64_t>(layout.leading) + row);
  };
  std::vector<double> rows(n * n), columns(n * n);
  for (std::uint64_t i = 0; i < n; ++i) {
    for (std::uint64_t k = 0; k < n; ++k) {
      rows[i * n + k] = get(left, a, how.transpose_a == CUBLAS_OP_T, i, k);
      columns[i * n + k] = get(right, b, how.transpose_b == CUBLAS_OP_T, k, i);
    }
    scaleLine(&rows[i * n], n, how.scale_mode_a, how.scales_a, i);
    scaleLine(&columns[i * n], n, how.scale_mode_b, how.scales_b, i);
  }
  for (std::uint64_t j = 0; j < out.columns; ++j)
    for (std::uint64_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int turn = 0; turn < (which == fakeCuda().slow_algorithm ? kSlowTurns : 1); ++turn) {
        sum = 0;
        for (std::uint64_t k = 0; k < n; ++k) sum += rows[i * n + k] * columns[j * n + k];
      }
      if (which == 2) sum = otherOrder(&rows[i * n], &columns[j * n], n, out.type);
      const auto at = j * static_cast<std::uint64_t>(out.leading) + i;
      if (out.type == CUDA_R_64F)
        static_cast<double*>(c)[at] = sum;
      else if (out.type == CUDA_R_32F)
        static_cast<float*>(c)[at] = static_cast<float>(sum);
      else if (out.type == CUDA_R_16F)
        static_cast<_Float16*>(c)[at] = static_cast<_Float16>(sum);
      else
        static_cast<std::int32_t*>(c)[at] = static_cast<std::int32_t>(sum);
    }
  ++fakeCuda().products;
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"
