// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/rccl/rccl.h"

#include "base/embedded.h"
#include "validate/burn/gpu/launch_shapes.h"
#include "validate/burn/hip/code_objects.h"
#include "validate/burn/hip/hip_calls.h"
#include "validate/burn/hip/library.h"
#include "validate/collective/nccl/nccl_rank.h"

namespace muster::collective {

std::span<const EmbeddedFile> valueCodeObjects();  ///< cmake/hip.cmake

namespace {

namespace hip = burn::hip;
using burn::gpu::StreamHandle;

class HipValues final : public Values {
 public:
  explicit HipValues(const hip::HipApi& api) : code_(api, valueCodeObjects()) {}

  Result<void> fill(StreamHandle stream, float* to, std::uint64_t count, std::uint64_t seed,
                    int rank) override {
    return code_.launch("fill_input", over(count), hip::own(stream), to, count, seed, rank);
  }
  Result<void> countWrong(StreamHandle stream, const float* from, std::uint64_t count,
                          OutputRule rule, unsigned long long* wrong) override {
    return code_.launch("count_wrong_output", over(count), hip::own(stream), from, count, rule,
                        wrong);
  }

 private:
  static hip::Shape over(std::uint64_t count) {
    return {static_cast<unsigned>(burn::gpu::blocksFor(count)), burn::gpu::kThreads, 0};
  }
  hip::CodeObjects code_;
};

Result<NcclApi> load() {
  TRY(library, hip::Library::open("MUSTER_RCCL", {"librccl.so.1"}, "install rccl of ROCm"));
  NcclApi api{};
  library.load(api.getVersion, "ncclGetVersion");
  library.load(api.getUniqueId, "ncclGetUniqueId");
  library.load(api.commInitRank, "ncclCommInitRank");
  library.load(api.commDestroy, "ncclCommDestroy");
  library.load(api.commAbort, "ncclCommAbort");
  library.load(api.commGetAsyncError, "ncclCommGetAsyncError");
  library.load(api.getErrorString, "ncclGetErrorString");
  library.load(api.getLastError, "ncclGetLastError");
  library.load(api.allReduce, "ncclAllReduce");
  library.load(api.allGather, "ncclAllGather");
  library.load(api.reduceScatter, "ncclReduceScatter");
  library.load(api.send, "ncclSend");
  library.load(api.recv, "ncclRecv");
  library.load(api.groupStart, "ncclGroupStart");
  library.load(api.groupEnd, "ncclGroupEnd");
  TRY_OK(library.complete());
  return api;
}

}  // namespace

Result<NcclFound> openRccl() {
  TRY(api, hip::HipApi::open());
  TRY(rccl, load());
  auto library = std::make_shared<NcclLibrary>();
  library->name = "RCCL", library->nccl = rccl;
  library->runtime = std::make_unique<hip::HipCalls<burn::gpu::Runtime>>(api);
  library->values = std::make_unique<HipValues>(api);
  return ranksBy(std::move(library));
}

}  // namespace muster::collective
