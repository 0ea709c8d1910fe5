// SPDX-License-Identifier: Apache-2.0
// One rank of a group by NCCL, on one GPU. A file of its own beside muster-collective, so that
// hosts without NCCL need none of it.
#include "validate/burn/cuda/handles.h"
#include "validate/collective/nccl/values.h"
#include "validate/collective/transports.h"

#include <nccl.h>

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

namespace muster::collective {
namespace {

using burn::cuda::allocate;
using burn::cuda::as;
using burn::cuda::DeviceMemory;
using burn::cuda::ok;
using burn::cuda::Span;
using burn::cuda::Stream;

Result<void> ok(ncclResult_t code, const char* call) {
  if (code == ncclSuccess) return {};
  return fail(ErrorCode::Unavailable,
              fmt::format("{}: {}; {}", call, ncclGetErrorString(code), ncclGetLastError(nullptr)));
}

/// Destroying one flushes what its proxy has still to send; only one that failed is aborted, since
/// it may never come to an end.
struct EndCommunicator {
  const bool* failed;
  void operator()(ncclComm_t communicator) const {
    *failed ? ncclCommAbort(communicator) : ncclCommDestroy(communicator);
  }
};

class NcclRank final : public Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> join(const std::string& id_bytes, const Job& job,
                                                    int rank, int local) {
    ncclUniqueId id;
    if (id_bytes.size() != sizeof id.internal)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("the group's NCCL id has {} bytes, {} are wanted: two versions of NCCL?",
                      id_bytes.size(), sizeof id.internal));
    std::copy(id_bytes.begin(), id_bytes.end(), id.internal);
    auto made = std::unique_ptr<NcclRank>(new NcclRank(job, rank));
    TRY_OK(ok(cudaSetDevice(local), "cudaSetDevice"));
    char pci[32] = {};
    TRY_OK(ok(cudaDeviceGetPCIBusId(pci, sizeof pci, local), "cudaDeviceGetPCIBusId"));
    made->device_ = pci;
    TRY(stream, burn::cuda::makeStream());
    TRY(span, Span::make());
    made->stream_ = std::move(stream), made->span_ = std::move(span);
    ncclComm_t communicator = nullptr;
    TRY_OK(ok(ncclCommInitRank(&communicator, job.ranks, id, rank), "ncclCommInitRank"));
    made->communicator_ = {communicator, EndCommunicator{&made->failed_}};
    TRY(input, allocate(job.max_bytes + kSpareBytes));
    TRY(output, allocate(job.max_bytes + kSpareBytes));
    TRY(wrong, allocate(sizeof(unsigned long long)));
    made->input_ = std::move(input), made->output_ = std::move(output),
    made->wrong_ = std::move(wrong);
    made->failed_ = false;
    made->end_ = std::chrono::steady_clock::now() + job.limit;
    return made;
  }

  std::string device() const override { return device_; }

  Result<std::uint64_t> check(const Step& step, std::uint64_t seed) override {
    return noted(checkOnce(step, seed));
  }

  Result<double> time(const Step& step, int iterations) override {
    return noted(timeOnce(step, iterations));
  }

 private:
  static constexpr std::uint64_t kSpareBytes = 1u
                                               << 20;  ///< sizes are rounded up to a value a rank

  NcclRank(const Job& job, int rank) : rank_(rank), ranks_(job.ranks) {}

  template <class T>
  Result<T> noted(Result<T> result) {
    failed_ = failed_ || !result;
    return result;
  }

  Result<std::uint64_t> checkOnce(const Step& step, std::uint64_t seed) {
    const auto& shape = step.shape;
    fillInput(stream_.get(), as<float>(input_), shape.input, seed, rank_);
    TRY_OK(ok(cudaMemsetAsync(output_.get(), 0xff, shape.output * sizeof(float), stream_.get()),
              "cudaMemsetAsync"));  // NaN: what nobody writes is wrong
    TRY_OK(ok(cudaMemsetAsync(wrong_.get(), 0, sizeof(unsigned long long), stream_.get()),
              "cudaMemsetAsync"));
    TRY_OK(once(step));
    TRY_OK(await(step));
    const int whose = step.operation == Operation::Pair ? step.peer : rank_;
    countWrongOutput(stream_.get(), as<float>(output_), shape.output,
                     {step.operation, seed, whose, ranks_, shape.count},
                     as<unsigned long long>(wrong_));
    TRY_OK(burn::cuda::launched("checking the data"));
    unsigned long long wrong = 0;
    TRY_OK(ok(
        cudaMemcpyAsync(&wrong, wrong_.get(), sizeof wrong, cudaMemcpyDeviceToHost, stream_.get()),
        "cudaMemcpyAsync"));
    TRY_OK(await(step));
    return wrong;
  }

  Result<double> timeOnce(const Step& step, int iterations) {
    TRY_OK(span_->start(stream_.get()));
    for (int i = 0; i < iterations; ++i) TRY_OK(once(step));
    TRY_OK(span_->record(stream_.get()));
    TRY_OK(await(step));
    TRY(seconds, span_->seconds());
    return seconds / iterations;
  }

  /// Until the stream is through. A rank that is gone lets NCCL's kernels wait for ever: its
  /// asynchronous errors are asked for meanwhile, and the job's limit holds. What fails is aborted
  /// by the communicator's end, which releases the stream.
  Result<void> await(const Step& step) const {
    for (;;) {
      const auto state = cudaStreamQuery(stream_.get());
      if (state != cudaSuccess && state != cudaErrorNotReady) return ok(state, "cudaStreamQuery");
      if (state == cudaErrorNotReady) (void)cudaGetLastError();  // where it would stay as an error
      ncclResult_t behind = ncclSuccess;
      TRY_OK(ok(ncclCommGetAsyncError(communicator_.get(), &behind), "ncclCommGetAsyncError"));
      if (behind != ncclSuccess && behind != ncclInProgress)
        return fail(ErrorCode::Unavailable,
                    fmt::format("NCCL met an error while {} ran{}: {}; {}",
                                toString(step.operation), peerOf(step), ncclGetErrorString(behind),
                                ncclGetLastError(communicator_.get())));
      if (state == cudaSuccess) return {};
      if (std::chrono::steady_clock::now() >= end_)
        return fail(ErrorCode::Timeout,
                    fmt::format("{} stands still{}: NCCL reports no error, and the stream is not "
                                "through until the limit",
                                toString(step.operation), peerOf(step)));
      std::this_thread::sleep_for(kBetweenQueries);
    }
  }
  static std::string peerOf(const Step& step) {
    return step.peer < 0 ? "" : fmt::format(" with rank {}", step.peer);
  }

  Result<void> once(const Step& step) {
    const auto& shape = step.shape;
    const auto* in = as<float>(input_);
    auto* out = as<float>(output_);
    const auto communicator = communicator_.get();
    const auto stream = stream_.get();
    switch (step.operation) {
      case Operation::AllReduce:
        return ok(ncclAllReduce(in, out, shape.count, ncclFloat, ncclSum, communicator, stream),
                  "ncclAllReduce");
      case Operation::AllGather:
        return ok(ncclAllGather(in, out, shape.count, ncclFloat, communicator, stream),
                  "ncclAllGather");
      case Operation::ReduceScatter:
        return ok(ncclReduceScatter(in, out, shape.count, ncclFloat, ncclSum, communicator, stream),
                  "ncclReduceScatter");
      case Operation::SendRecv:
        return exchange(in, out, shape.count, (rank_ + 1) % ranks_, (rank_ + ranks_ - 1) % ranks_);
      case Operation::Pair:
        return exchange(in, out, shape.count, step.peer, step.peer);
      case Operation::AllToAll:
        break;
    }
    TRY_OK(ok(ncclGroupStart(), "ncclGroupStart"));
    for (int peer = 0; peer < ranks_; ++peer) {
      const auto at = static_cast<std::uint64_t>(peer) * shape.count;
      TRY_OK(ok(ncclSend(in + at, shape.count, ncclFloat, peer, communicator, stream), "ncclSend"));
      TRY_OK(
          ok(ncclRecv(out + at, shape.count, ncclFloat, peer, communicator, stream), "ncclRecv"));
    }
    return ok(ncclGroupEnd(), "ncclGroupEnd");
  }

  Result<void> exchange(const float* in, float* out, std::uint64_t count, int to, int from) {
    TRY_OK(ok(ncclGroupStart(), "ncclGroupStart"));
    TRY_OK(ok(ncclSend(in, count, ncclFloat, to, communicator_.get(), stream_.get()), "ncclSend"));
    TRY_OK(
        ok(ncclRecv(out, count, ncclFloat, from, communicator_.get(), stream_.get()), "ncclRecv"));
    return ok(ncclGroupEnd(), "ncclGroupEnd");
  }

  static constexpr std::chrono::microseconds kBetweenQueries{50};
  const int rank_, ranks_;
  std::chrono::steady_clock::time_point end_{};
  std::string device_;
  Stream stream_;
  std::optional<Span> span_;
  DeviceMemory input_, output_, wrong_;
  bool failed_ = true;  ///< until it has joined, and from its first failed call on
  std::unique_ptr<std::remove_pointer_t<ncclComm_t>, EndCommunicator> communicator_{
      nullptr, EndCommunicator{&failed_}};  ///< last: ended before its memory goes
};

Result<std::string> makeId() {
  ncclUniqueId id;
  TRY_OK(ok(ncclGetUniqueId(&id), "ncclGetUniqueId"));
  return std::string(id.internal, sizeof id.internal);
}

Join joinBy(std::string id) {
  return [id = std::move(id)](const Job& job, int rank, int local) {
    return NcclRank::join(id, job, rank, local);
  };
}

Result<NcclFound> open() {
  int gpus = 0, version = 0;
  if (const auto code = cudaGetDeviceCount(&gpus); code != cudaSuccess)
    return fail(ErrorCode::NotFound,
                fmt::format("CUDA sees no GPU: {}; is the NVIDIA driver loaded?",
                            cudaGetErrorString(code)));
  if (gpus < 1)
    return fail(ErrorCode::NotFound, "CUDA sees no GPU: is CUDA_VISIBLE_DEVICES empty?");
  TRY_OK(ok(ncclGetVersion(&version), "ncclGetVersion"));
  return NcclFound{gpus,
                   fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100),
                   makeId, joinBy};
}

}  // namespace
}  // namespace muster::collective

extern "C" __attribute__((visibility("default"))) void muster_collective_open_nccl(
    muster::Result<muster::collective::NcclFound>& found) {
  found = muster::collective::open();
}
