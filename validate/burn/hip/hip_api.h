// SPDX-License-Identifier: Apache-2.0
// HIP's runtime and hipBLASLt by dlopen, with the libraries' own ABI: no header and no library of
// ROCm at build time. Source of names, types and numbers: hip_runtime_api.h, library_types.h,
// hipblas-common.h and hipblaslt.h of ROCm 6.3 and 7; unchanged between them.
#pragma once

#include "base/result.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace muster::burn::hip {

using Code = int;  ///< hipError_t
inline constexpr Code kSuccess = 0, kOutOfMemory = 2, kNotReady = 600, kPeerAlreadyEnabled = 704;
inline constexpr int kCopyHostToDevice = 1, kCopyDeviceToHost = 2, kCopyDeviceToDevice = 3;
inline constexpr unsigned kStreamNonBlocking = 1, kRegisterPortable = 1;

using HipStream = struct OpaqueStream*;
using HipEvent = struct OpaqueEvent*;
using HipModule = struct OpaqueModule*;
using HipFunction = struct OpaqueFunction*;

/// hipDeviceProp_tR0600, of which this reads five members.
struct DeviceProperties {
  static constexpr std::size_t kMostBytes = 4096;  ///< the library's own is 1,472
  char name[256];
  char unused_a[40];
  std::size_t shared_bytes_a_block;  ///< sharedMemPerBlock
  char unused_b[84];
  int units;  ///< multiProcessorCount
  char unused_c[224];
  int l2_bytes;  ///< l2CacheSize
  char unused_d[540];
  char architecture[256];  ///< gcnArchName: "gfx942:sramecc+:xnack-"
  char spare[kMostBytes - 1160 - 256];
};
static_assert(offsetof(DeviceProperties, shared_bytes_a_block) == 296);
static_assert(offsetof(DeviceProperties, l2_bytes) == 616);
static_assert(offsetof(DeviceProperties, units) == 388);
static_assert(offsetof(DeviceProperties, architecture) == 1160);
/// Without its features: "gfx942".
std::string architectureOf(const DeviceProperties& properties);

/// libamdhip64. Each member is the function of its name.
struct HipApi {
  Code (*getDeviceCount)(int*);
  Code (*getDevice)(int*);
  Code (*setDevice)(int);
  Code (*getDeviceProperties)(DeviceProperties*, int);
  Code (*deviceGetPciBusId)(char*, int, int);
  Code (*deviceCanAccessPeer)(int*, int, int);
  Code (*deviceEnablePeerAccess)(int, unsigned);
  Code (*memGetInfo)(std::size_t*, std::size_t*);
  Code (*malloc)(void**, std::size_t);
  Code (*free)(void*);
  Code (*hostRegister)(void*, std::size_t, unsigned);
  Code (*hostUnregister)(void*);
  Code (*memcpyAsync)(void*, const void*, std::size_t, int, HipStream);
  Code (*memcpyPeerAsync)(void*, int, const void*, int, std::size_t, HipStream);
  Code (*memsetAsync)(void*, int, std::size_t, HipStream);
  Code (*streamCreateWithFlags)(HipStream*, unsigned);
  Code (*streamDestroy)(HipStream);
  Code (*streamSynchronize)(HipStream);
  Code (*streamQuery)(HipStream);
  Code (*streamWaitEvent)(HipStream, HipEvent, unsigned);
  Code (*eventCreate)(HipEvent*);
  Code (*eventDestroy)(HipEvent);
  Code (*eventRecord)(HipEvent, HipStream);
  Code (*eventSynchronize)(HipEvent);
  Code (*eventElapsedTime)(float*, HipEvent, HipEvent);
  Code (*getLastError)();
  const char* (*getErrorString)(Code);
  Code (*moduleLoadData)(HipModule*, const void*);
  Code (*moduleUnload)(HipModule);
  Code (*moduleGetFunction)(HipFunction*, HipModule, const char*);
  /// The grid in blocks.
  Code (*moduleLaunchKernel)(HipFunction, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, unsigned shared_bytes, HipStream, void** arguments, void**);

  Result<void> ok(Code code, const char* call) const {
    if (code == kSuccess) return {};
    return fail(code == kOutOfMemory ? ErrorCode::Unavailable : ErrorCode::Internal,
                fmt::format("{}: {}", call, getErrorString(code)));
  }

  /// libamdhip64.so of ROCm 7 or 6, also in /opt/rocm/lib, or the file that MUSTER_HIP names. It
  /// stays loaded. Errors: NotFound, Corrupt (an older release)
  static Result<HipApi> open();
};

using BlasStatus = int;  ///< hipblasStatus_t; 0: success
using BlasHandle = void*;
using MatmulDesc = struct OpaqueMatmulDesc*;
using MatrixLayout = struct OpaqueMatrixLayout*;
using Preference = struct OpaquePreference*;
struct Algorithm {
  std::uint8_t data[16];
  std::size_t max_workspace_bytes;
};
struct Heuristic {
  Algorithm algorithm;
  std::size_t workspace_bytes;
  BlasStatus state;
  float waves;
  int reserved[4];
};
static_assert(sizeof(Algorithm) == 24 && sizeof(Heuristic) == 56);

/// hipDataType
enum class DataType : int {
  Float = 0,
  Double = 1,
  Half = 2,
  Int8 = 3,
  Int32 = 10,
  Brain = 14,
  E4m3 = 28,
  E5m2 = 29,
  E4m3Fnuz = 1000,
  E5m2Fnuz = 1001
};
/// hipblasComputeType_t
enum class Compute : int { Float = 2, Tf32 = 6, Double = 7, Int32 = 9 };
inline constexpr int kTransposed = 112, kNotTransposed = 111;   ///< hipblasOperation_t
inline constexpr int kDescTransposeA = 0, kDescTransposeB = 1,  ///< of a MatmulDesc
    kDescScalesOfA = 5, kDescScalesOfB = 6, kDescScaleModeOfA = 31, kDescScaleModeOfB = 32;
inline constexpr std::uint32_t kScaleOf32 = 2;        ///< a scale of E8M0 for 32 values along k
inline constexpr int kHipBlasLtWithScales = 100'000;  ///< 1.0, of ROCm 7
inline constexpr int kPreferenceMaxWorkspaceBytes = 1;
inline constexpr int kOldestHipBlasLt =
    800;  ///< 0.8, of ROCm 6.2: major·100,000 + minor·100 + patch

/// libhipblaslt.
struct HipBlasLtApi {
  BlasStatus (*create)(BlasHandle*);
  BlasStatus (*destroy)(BlasHandle);
  BlasStatus (*getVersion)(BlasHandle, int*);
  BlasStatus (*matmulDescCreate)(MatmulDesc*, Compute, DataType scale);
  BlasStatus (*matmulDescDestroy)(MatmulDesc);
  BlasStatus (*matmulDescSetAttribute)(MatmulDesc, int, const void*, std::size_t);
  BlasStatus (*matrixLayoutCreate)(MatrixLayout*, DataType, std::uint64_t rows,
                                   std::uint64_t columns, std::int64_t leading);
  BlasStatus (*matrixLayoutDestroy)(MatrixLayout);
  BlasStatus (*matmulPreferenceCreate)(Preference*);
  BlasStatus (*matmulPreferenceDestroy)(Preference);
  BlasStatus (*matmulPreferenceSetAttribute)(Preference, int, const void*, std::size_t);
  BlasStatus (*matmulAlgoGetHeuristic)(BlasHandle, MatmulDesc, MatrixLayout a, MatrixLayout b,
                                       MatrixLayout c, MatrixLayout d, Preference, int wanted,
                                       Heuristic*, int* found);
  BlasStatus (*matmul)(BlasHandle, MatmulDesc, const void* alpha, const void* a, MatrixLayout,
                       const void* b, MatrixLayout, const void* beta, const void* c, MatrixLayout,
                       void* d, MatrixLayout, const Algorithm*, void* workspace, std::size_t,
                       HipStream);

  Result<void> ok(BlasStatus status, const char* call) const {
    if (status == 0) return {};
    return fail(ErrorCode::Internal, fmt::format("{}: hipBLAS status {}", call, status));
  }

  /// As HipApi::open; MUSTER_HIPBLASLT names another file.
  static Result<HipBlasLtApi> open();
};

}  // namespace muster::burn::hip
