// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/nccl/nccl_rank.h"

#include "validate/burn/gpu/handles.h"

#include <chrono>
#include <cstdlib>
#include <optional>
#include <thread>

namespace muster::collective {
namespace {

using burn::gpu::allocate;
using burn::gpu::as;
using burn::gpu::DeviceMemory;
using burn::gpu::Span;
using burn::gpu::Stream;

/// Destroying one flushes what its proxy has still to send; only one that failed is aborted, since
/// it may never come to an end.
struct EndCommunicator {
  const NcclApi* nccl;
  const bool* failed;
  void operator()(NcclApi::Comm communicator) const {
    *failed ? nccl->commAbort(communicator) : nccl->commDestroy(communicator);
  }
};

class NcclRank final : public Communicator {
 public:
  static Result<std::unique_ptr<Communicator>> join(std::shared_ptr<NcclLibrary> library,
                                                    const std::string& id_bytes, const Job& job,
                                                    int rank, int local) {
    NcclApi::UniqueId id;
    if (id_bytes.size() != sizeof id.bytes)
      return fail(
          ErrorCode::Corrupt,
          fmt::format("the group's NCCL id has {} bytes, {} are wanted: two versions of NCCL?",
                      id_bytes.size(), sizeof id.bytes));
    std::copy(id_bytes.begin(), id_bytes.end(), id.bytes);
    auto made = std::unique_ptr<NcclRank>(new NcclRank(std::move(library), job, rank));
    TRY_OK(made->prepare(id, job, local));
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

  NcclRank(std::shared_ptr<NcclLibrary> library, const Job& job, int rank)
      : library_(std::move(library)), rank_(rank), ranks_(job.ranks) {}

  Result<void> prepare(const NcclApi::UniqueId& id, const Job& job, int local) {
    const auto& runtime = *library_->runtime;
    TRY_OK(runtime.select(local));
    TRY(pci, runtime.pciOf(local));
    TRY(stream, burn::gpu::makeStream(runtime));
    TRY(span, Span::make(runtime));
    device_ = pci, stream_ = std::move(stream), span_ = std::move(span);
    NcclApi::Comm communicator = nullptr;
    TRY_OK(ok(nccl_.commInitRank(&communicator, job.ranks, id, rank_), "ncclCommInitRank"));
    communicator_ = {communicator, EndCommunicator{&nccl_, &failed_}};
    TRY(input, allocate(runtime, job.max_bytes + kSpareBytes));
    TRY(output, allocate(runtime, job.max_bytes + kSpareBytes));
    TRY(wrong, allocate(runtime, sizeof(unsigned long long)));
    input_ = std::move(input), output_ = std::move(output), wrong_ = std::move(wrong);
    failed_ = false;
    end_ = std::chrono::steady_clock::now() + job.limit;
    return {};
  }

  Result<void> ok(NcclApi::Code code, const char* call) const { return library_->ok(code, call); }

  template <class T>
  Result<T> noted(Result<T> result) {
    failed_ = failed_ || !result;
    return result;
  }

  Result<std::uint64_t> checkOnce(const Step& step, std::uint64_t seed) {
    const auto& shape = step.shape;
    const auto& runtime = *library_->runtime;
    TRY_OK(library_->values->fill(stream_.get(), as<float>(input_), shape.input, seed, rank_));
    TRY_OK(runtime.setBytes(output_.get(), 0xff, shape.output * sizeof(float),
                            stream_.get()));  // NaN: what nobody writes is wrong
    TRY_OK(runtime.setBytes(wrong_.get(), 0, sizeof(unsigned long long), stream_.get()));
    TRY_OK(once(step));
    TRY_OK(await(step));
    const int whose = step.operation == Operation::Pair ? step.peer : rank_;
    TRY_OK(library_->values->countWrong(stream_.get(), as<float>(output_), shape.output,
                                        {step.operation, seed, whose, ranks_, shape.count},
                                        as<unsigned long long>(wrong_)));
    unsigned long long wrong = 0;
    TRY_OK(runtime.copy(&wrong, wrong_.get(), sizeof wrong, burn::gpu::CopyKind::DeviceToHost,
                        stream_.get()));
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
      TRY(done, library_->runtime->isDone(stream_.get()));
      NcclApi::Code behind = NcclApi::kSuccess;
      TRY_OK(ok(nccl_.commGetAsyncError(communicator_.get(), &behind), "ncclCommGetAsyncError"));
      if (behind != NcclApi::kSuccess && behind != NcclApi::kInProgress)
        return fail(ErrorCode::Unavailable, fmt::format("{} met an error while {} ran{}: {}; {}",
                                                        library_->name, toString(step.operation),
                                                        peerOf(step), nccl_.getErrorString(behind),
                                                        nccl_.getLastError(communicator_.get())));
      if (done) return {};
      if (std::chrono::steady_clock::now() >= end_)
        return fail(ErrorCode::Timeout,
                    fmt::format("{} stands still{}: {} reports no error, and the stream is not "
                                "through until the limit",
                                toString(step.operation), peerOf(step), library_->name));
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
        return ok(nccl_.allReduce(in, out, shape.count, NcclApi::kFloat, NcclApi::kSum,
                                  communicator, stream),
                  "ncclAllReduce");
      case Operation::AllGather:
        return ok(nccl_.allGather(in, out, shape.count, NcclApi::kFloat, communicator, stream),
                  "ncclAllGather");
      case Operation::ReduceScatter:
        return ok(nccl_.reduceScatter(in, out, shape.count, NcclApi::kFloat, NcclApi::kSum,
                                      communicator, stream),
                  "ncclReduceScatter");
      case Operation::SendRecv:
        return exchange(in, out, shape.count, (rank_ + 1) % ranks_, (rank_ + ranks_ - 1) % ranks_);
      case Operation::Pair:
        return exchange(in, out, shape.count, step.peer, step.peer);
      case Operation::AllToAll:
        break;
    }
    TRY_OK(ok(nccl_.groupStart(), "ncclGroupStart"));
    for (int peer = 0; peer < ranks_; ++peer) {
      const auto at = static_cast<std::uint64_t>(peer) * shape.count;
      TRY_OK(ok(nccl_.send(in + at, shape.count, NcclApi::kFloat, peer, communicator, stream),
                "ncclSend"));
      TRY_OK(ok(nccl_.recv(out + at, shape.count, NcclApi::kFloat, peer, communicator, stream),
                "ncclRecv"));
    }
    return ok(nccl_.groupEnd(), "ncclGroupEnd");
  }

  Result<void> exchange(const float* in, float* out, std::uint64_t count, int to, int from) {
    TRY_OK(ok(nccl_.groupStart(), "ncclGroupStart"));
    TRY_OK(ok(nccl_.send(in, count, NcclApi::kFloat, to, communicator_.get(), stream_.get()),
              "ncclSend"));
    TRY_OK(ok(nccl_.recv(out, count, NcclApi::kFloat, from, communicator_.get(), stream_.get()),
              "ncclRecv"));
    return ok(nccl_.groupEnd(), "ncclGroupEnd");
  }

  static constexpr std::chrono::microseconds kBetweenQueries{50};
  const std::shared_ptr<NcclLibrary> library_;
  const NcclApi& nccl_ = library_->nccl;
  const int rank_, ranks_;
  std::chrono::steady_clock::time_point end_{};
  std::string device_;
  Stream stream_;
  std::optional<Span> span_;
  DeviceMemory input_, output_, wrong_;
  bool failed_ = true;  ///< until it has joined, and from its first failed call on
  std::unique_ptr<std::remove_pointer_t<NcclApi::Comm>, EndCommunicator> communicator_{
      nullptr, EndCommunicator{&nccl_, &failed_}};  ///< last: ended before its memory goes
};

}  // namespace

Result<void> NcclLibrary::ok(NcclApi::Code code, const char* call) const {
  if (code == NcclApi::kSuccess) return {};
  return fail(ErrorCode::Unavailable, fmt::format("{}: {}; {}", call, nccl.getErrorString(code),
                                                  nccl.getLastError(nullptr)));
}

Result<NcclFound> ranksBy(std::shared_ptr<NcclLibrary> library) {
  TRY(gpus, library->runtime->count());
  int version = 0;
  TRY_OK(library->ok(library->nccl.getVersion(&version), "ncclGetVersion"));
  NcclFound found;
  found.gpus = gpus, found.library = library->name;
  found.version = fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  found.make_id = [library]() -> Result<std::string> {
    NcclApi::UniqueId id;
    TRY_OK(library->ok(library->nccl.getUniqueId(&id), "ncclGetUniqueId"));
    return std::string(id.bytes, sizeof id.bytes);
  };
  found.join_by = [library](std::string id) -> Join {
    return [library, id = std::move(id)](const Job& job, int rank, int local) {
      return NcclRank::join(library, id, job, rank, local);
    };
  };
  return found;
}

}  // namespace muster::collective
