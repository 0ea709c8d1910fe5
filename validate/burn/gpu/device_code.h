// SPDX-License-Identifier: Apache-2.0
// What device code is written with, in nvcc's words and in clang's for AMD GPUs. HIP's headers are
// not used: clang knows the builtins itself, so the kernels are compiled where there is no ROCm.
// Source: LLVM's AMDGPU user guide; AMD's CDNA 3 ISA (hardware registers); PTX ISA (%smid).
#pragma once

#include "validate/burn/gpu/kernel_types.h"

#if defined(MUSTER_DEVICE_CODE)  // another device: tests run kernels on the host's threads
#include MUSTER_DEVICE_CODE
#else

#if defined(__HIP__)
#define GPU_KERNEL extern "C" __attribute__((global)) void
#define GPU_DEVICE __attribute__((device)) inline
#define GPU_SHARED __attribute__((shared)) static
#else
#include <cuda_fp16.h>
#include <mma.h>
#define GPU_KERNEL __global__ void
#define GPU_DEVICE __device__ inline
#define GPU_SHARED __shared__
#endif

namespace muster::burn::gpu {

inline constexpr int kEdge = 16;  ///< of a probe's product

#if defined(__HIP__)

inline constexpr int kLanes = 64;  ///< of a wavefront
GPU_DEVICE int threadIndex() { return static_cast<int>(__builtin_amdgcn_workitem_id_x()); }
GPU_DEVICE int blockIndex() { return static_cast<int>(__builtin_amdgcn_workgroup_id_x()); }
GPU_DEVICE int blockSize() { return static_cast<int>(__builtin_amdgcn_workgroup_size_x()); }
/// In threads.
GPU_DEVICE std::uint64_t gridSize() { return __builtin_amdgcn_grid_size_x(); }

/// All threads of the block are here, and see what the others wrote.
GPU_DEVICE void meet() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
/// For blocks of one wavefront.
GPU_DEVICE void meetLanes() { meet(); }
GPU_DEVICE bool anyLane(bool mine) { return __builtin_amdgcn_ballot_w64(mine) != 0; }
template <class T>
GPU_DEVICE T addTo(T* sum, T value) {
  return __hip_atomic_fetch_add(sum, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

/// A number of the CU that this runs on, below kMaxUnits: die, shader engine, CU within it.
GPU_DEVICE int thisUnit() {
  constexpr int kHwId = 4, kWhole = 31 << 11;
  const unsigned where = __builtin_amdgcn_s_getreg(kHwId | kWhole);
  unsigned unit = (where >> 13 & 7) << 4 | (where >> 8 & 15);
#if defined(__gfx942__) || defined(__gfx950__)
  constexpr int kXccId = 20;
  unit |= (__builtin_amdgcn_s_getreg(kXccId | kWhole) & 7) << 7;
#endif
  return static_cast<int>(unit) % kMaxUnits;
}

/// What the launch gave to the block beside its own.
GPU_DEVICE std::uint64_t* sharedWords() {
  extern __attribute__((shared)) std::uint64_t dynamic_words[];
  return dynamic_words;
}

using HalfBits = std::uint16_t;
/// c = a·b by the matrix unit; a row-major, b column-major, c row-major. One wavefront.
/// Source: register layout of V_MFMA_F32_16X16X16_F16, AMD's matrix instruction calculator
GPU_DEVICE void multiplyByMatrixUnit(const HalfBits* a, const HalfBits* b, float* c) {
  typedef _Float16 Four __attribute__((ext_vector_type(4)));
  typedef float Sums __attribute__((ext_vector_type(4)));
  const int lane = threadIndex(), line = lane % kEdge, part = lane / kEdge;
  Four left, right;
  for (int i = 0; i < 4; ++i) {
    left[i] = __builtin_bit_cast(_Float16, a[line * kEdge + part * 4 + i]);
    right[i] = __builtin_bit_cast(_Float16, b[line * kEdge + part * 4 + i]);
  }
  const Sums sums = __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, Sums{0, 0, 0, 0}, 0, 0, 0);
  for (int i = 0; i < 4; ++i) c[(part * 4 + i) * kEdge + line] = sums[i];
}

#else

inline constexpr int kLanes = 32;  ///< of a warp
GPU_DEVICE int threadIndex() { return static_cast<int>(threadIdx.x); }
GPU_DEVICE int blockIndex() { return static_cast<int>(blockIdx.x); }
GPU_DEVICE int blockSize() { return static_cast<int>(blockDim.x); }
GPU_DEVICE std::uint64_t gridSize() { return static_cast<std::uint64_t>(gridDim.x) * blockDim.x; }
GPU_DEVICE void meet() { __syncthreads(); }
GPU_DEVICE void meetLanes() { __syncwarp(); }
GPU_DEVICE bool anyLane(bool mine) { return __any_sync(0xffffffffu, mine); }
template <class T>
GPU_DEVICE T addTo(T* sum, T value) {
  return atomicAdd(sum, value);
}
GPU_DEVICE int thisUnit() {
  unsigned unit;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(unit));
  return static_cast<int>(unit) % kMaxUnits;
}

GPU_DEVICE std::uint64_t* sharedWords() {
  extern __shared__ std::uint64_t dynamic_words[];
  return dynamic_words;
}

using HalfBits = std::uint16_t;
GPU_DEVICE void multiplyByMatrixUnit(const HalfBits* a, const HalfBits* b, float* c) {
  namespace wmma = nvcuda::wmma;
  wmma::fragment<wmma::matrix_a, kEdge, kEdge, kEdge, __half, wmma::row_major> left;
  wmma::fragment<wmma::matrix_b, kEdge, kEdge, kEdge, __half, wmma::col_major> right;
  wmma::fragment<wmma::accumulator, kEdge, kEdge, kEdge, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  wmma::load_matrix_sync(left, reinterpret_cast<const __half*>(a), kEdge);
  wmma::load_matrix_sync(right, reinterpret_cast<const __half*>(b), kEdge);
  wmma::mma_sync(sum, left, right, sum);
  wmma::store_matrix_sync(c, sum, kEdge, wmma::mem_row_major);
}

/// c += a·b for 16 × 32 · 32 × 8, of a's rows two values of four, by the lanes of a warp together.
/// `places` of the first two lanes of each four count. Source: PTX ISA, mma.sp.m16n8k32
GPU_DEVICE void multiplySparseFragment(float (&c)[4], const std::uint32_t (&a)[4],
                                       const std::uint32_t (&b)[4], std::uint32_t places) {
#if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1205  // PTX 8.5
#define MUSTER_SPARSE "mma.sp::ordered_metadata"
#else
#define MUSTER_SPARSE "mma.sp"
#endif
  asm volatile(MUSTER_SPARSE
               ".sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
               "{%4, %5, %6, %7}, {%8, %9, %10, %11}, {%0, %1, %2, %3}, %12, 0x0;"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]),
                 "r"(b[3]), "r"(places));
#undef MUSTER_SPARSE
}

#endif

}  // namespace muster::burn::gpu

#endif  // MUSTER_DEVICE_CODE
