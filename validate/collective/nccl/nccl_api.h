// SPDX-License-Identifier: Apache-2.0
// NCCL's calls as a table: NVIDIA's library fills it when muster is linked with it, AMD's RCCL,
// which has the same names, types and numbers, when it is loaded. Source: nccl.h of NCCL 2.28 and
// RCCL 2.21
#pragma once

#include "validate/burn/gpu/gpu_handle_types.h"

#include <cstddef>

namespace muster::collective {

struct NcclApi {
  using Code = int;  ///< ncclResult_t
  static constexpr Code kSuccess = 0, kInProgress = 7;
  static constexpr int kFloat = 7;  ///< ncclDataType_t
  static constexpr int kSum = 0;    ///< ncclRedOp_t
  using Comm = struct OpaqueComm*;
  using Stream = burn::gpu::StreamHandle;
  struct UniqueId {
    char bytes[128];
  };

  Code (*getVersion)(int*);
  Code (*getUniqueId)(UniqueId*);
  Code (*commInitRank)(Comm*, int ranks, UniqueId, int rank);
  Code (*commDestroy)(Comm);
  Code (*commAbort)(Comm);
  Code (*commGetAsyncError)(Comm, Code*);
  const char* (*getErrorString)(Code);
  const char* (*getLastError)(Comm);
  Code (*allReduce)(const void*, void*, std::size_t, int type, int operation, Comm, Stream);
  Code (*allGather)(const void*, void*, std::size_t, int type, Comm, Stream);
  Code (*reduceScatter)(const void*, void*, std::size_t, int type, int operation, Comm, Stream);
  Code (*send)(const void*, std::size_t, int type, int peer, Comm, Stream);
  Code (*recv)(void*, std::size_t, int type, int peer, Comm, Stream);
  Code (*groupStart)();
  Code (*groupEnd)();
};

}  // namespace muster::collective
