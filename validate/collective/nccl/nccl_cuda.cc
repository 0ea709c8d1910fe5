// SPDX-License-Identifier: Apache-2.0
// NCCL on NVIDIA GPUs. A file of its own beside muster-collective, so that hosts without NCCL need
// none of it.
#include "validate/burn/cuda/cuda_calls.h"
#include "validate/collective/nccl/nccl_rank.h"
#include "validate/collective/nccl/values.h"

#include <nccl.h>

#include <bit>

namespace muster::collective {
namespace {

using burn::cuda::own;
using burn::gpu::StreamHandle;

static_assert(ncclSuccess == NcclApi::kSuccess && ncclInProgress == NcclApi::kInProgress &&
              ncclFloat == NcclApi::kFloat && ncclSum == NcclApi::kSum &&
              sizeof(ncclUniqueId) == sizeof(NcclApi::UniqueId));

class CudaValues final : public Values {
 public:
  Result<void> fill(StreamHandle stream, float* to, std::uint64_t count, std::uint64_t seed,
                    int rank) override {
    return fillInput(own(stream), to, count, seed, rank), burn::cuda::launched("filling inputs");
  }
  Result<void> countWrong(StreamHandle stream, const float* from, std::uint64_t count,
                          OutputRule rule, unsigned long long* wrong) override {
    return countWrongOutput(own(stream), from, count, rule, wrong),
           burn::cuda::launched("checking the data");
  }
};

ncclComm_t own(NcclApi::Comm communicator) { return reinterpret_cast<ncclComm_t>(communicator); }
ncclDataType_t type(int number) { return static_cast<ncclDataType_t>(number); }
ncclRedOp_t operation(int number) { return static_cast<ncclRedOp_t>(number); }
using Comm = NcclApi::Comm;
using Stream = NcclApi::Stream;

/// Each call with its own types: the library's are opaque, ours too.
NcclApi linked() {
  NcclApi api{};
  api.getVersion = [](int* version) -> int { return ncclGetVersion(version); };
  api.getUniqueId = [](NcclApi::UniqueId* id) -> int {
    return ncclGetUniqueId(reinterpret_cast<ncclUniqueId*>(id));
  };
  api.commInitRank = [](Comm* communicator, int ranks, NcclApi::UniqueId id, int rank) -> int {
    return ncclCommInitRank(reinterpret_cast<ncclComm_t*>(communicator), ranks,
                            std::bit_cast<ncclUniqueId>(id), rank);
  };
  api.commDestroy = [](Comm communicator) -> int { return ncclCommDestroy(own(communicator)); };
  api.commAbort = [](Comm communicator) -> int { return ncclCommAbort(own(communicator)); };
  api.commGetAsyncError = [](Comm communicator, int* behind) -> int {
    ncclResult_t code = ncclSuccess;
    const auto asked = ncclCommGetAsyncError(own(communicator), &code);
    return *behind = code, asked;
  };
  api.getErrorString = [](int code) { return ncclGetErrorString(static_cast<ncclResult_t>(code)); };
  api.getLastError = [](Comm communicator) { return ncclGetLastError(own(communicator)); };
  api.allReduce = [](const void* in, void* out, std::size_t count, int of, int how,
                     Comm communicator, Stream stream) -> int {
    return ncclAllReduce(in, out, count, type(of), operation(how), own(communicator), own(stream));
  };
  api.allGather = [](const void* in, void* out, std::size_t count, int of, Comm communicator,
                     Stream stream) -> int {
    return ncclAllGather(in, out, count, type(of), own(communicator), own(stream));
  };
  api.reduceScatter = [](const void* in, void* out, std::size_t count, int of, int how,
                         Comm communicator, Stream stream) -> int {
    return ncclReduceScatter(in, out, count, type(of), operation(how), own(communicator),
                             own(stream));
  };
  api.send = [](const void* in, std::size_t count, int of, int peer, Comm communicator,
                Stream stream) -> int {
    return ncclSend(in, count, type(of), peer, own(communicator), own(stream));
  };
  api.recv = [](void* out, std::size_t count, int of, int peer, Comm communicator,
                Stream stream) -> int {
    return ncclRecv(out, count, type(of), peer, own(communicator), own(stream));
  };
  api.groupStart = []() -> int { return ncclGroupStart(); };
  api.groupEnd = []() -> int { return ncclGroupEnd(); };
  return api;
}

Result<NcclFound> open() {
  auto library = std::make_shared<NcclLibrary>();
  library->name = "NCCL", library->nccl = linked();
  library->runtime = std::make_unique<burn::cuda::CudaCalls<burn::gpu::Runtime>>();
  library->values = std::make_unique<CudaValues>();
  return ranksBy(std::move(library));
}

}  // namespace
}  // namespace muster::collective

extern "C" __attribute__((visibility("default"))) void muster_collective_open_nccl(
    muster::Result<muster::collective::NcclFound>& found) {
  found = muster::collective::open();
}
