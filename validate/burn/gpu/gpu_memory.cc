// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/gpu_memory.h"

#include "validate/burn/cpu/kernels.h"
#include "validate/burn/gpu/host_buffer.h"

#include <algorithm>
#include <thread>

namespace muster::burn::gpu {
namespace {

constexpr std::uint64_t kWord = sizeof(std::uint64_t);

class GpuMemory final : public MemoryWork {
 public:
  static Result<std::unique_ptr<MemoryWork>> make(Backend& runtime, std::uint64_t bytes, int device,
                                                  std::optional<Fault> fault) {
    auto work = std::unique_ptr<GpuMemory>(new GpuMemory(runtime, device, fault));
    TRY_OK(runtime.select(device));
    work->words_ = bytes / kWord / kCopyBlockWords * kCopyBlockWords;
    if (work->words_ == 0) return fail(ErrorCode::InvalidInput, "no device memory to test");
    TRY(memory, allocate(runtime, work->words_ * kWord));
    TRY(report, allocate(runtime, sizeof(WordReport)));
    TRY(stream, makeStream(runtime));
    TRY(span, Span::make(runtime));
    work->memory_ = std::move(memory), work->report_ = std::move(report),
    work->stream_ = std::move(stream), work->span_ = std::move(span);
    return work;
  }

  std::uint64_t bytes() const override { return words_ * kWord; }

  Result<StepResult> step(const MemoryStep& step, std::uint64_t seed) override {
    TRY_OK(runtime_.select(device_));
    std::this_thread::sleep_for(step.hold);  // the test itself: cells are left alone
    TRY_OK(runtime_.setBytes(report_.get(), 0, sizeof(WordReport), stream_.get()));
    TRY_OK(span_->start(stream_.get()));
    const Walk walk{step.downwards, step.read.has_value(), step.write.has_value(),
                    step.read.value_or(MemoryWord{}), step.write.value_or(MemoryWord{})};
    TRY_OK(runtime_.kernels().walkMemory(stream_.get(), walk, as<std::uint64_t>(memory_), words_,
                                         seed, as<WordReport>(report_)));
    TRY(seconds, span_->stop(stream_.get()));
    WordReport seen;
    TRY_OK(runtime_.copy(&seen, report_.get(), sizeof seen, CopyKind::DeviceToHost, stream_.get()));
    if (walk.writes && fault_ && fault_->kind == FaultKind::MemoryBit)
      TRY_OK(runtime_.kernels().flipBit(
          stream_.get(), as<std::uint64_t>(memory_) + fault_->at % words_, kWord, fault_->bit));
    TRY_OK(runtime_.await(stream_.get()));
    StepResult result{bytes() * (static_cast<std::uint64_t>(walk.reads) +
                                 static_cast<std::uint64_t>(walk.writes)),
                      seconds,
                      seen.wrong,
                      {}};
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(seen.wrong, kFirstBad); ++i)
      result.first.push_back({seen.first[i].index * kWord, seen.first[i].expected,
                              seen.first[i].seen, seen.first[i].unit});
    return result;
  }

  Result<double> copyRate() override {
    TRY_OK(runtime_.select(device_));
    const auto half = words_ / 2;
    TRY_OK(span_->start(stream_.get()));
    TRY_OK(runtime_.copy(as<std::uint64_t>(memory_) + half, memory_.get(), half * kWord,
                         CopyKind::DeviceToDevice, stream_.get()));
    TRY(seconds, span_->stop(stream_.get()));
    return static_cast<double>(2 * half * kWord) / seconds;
  }

 private:
  GpuMemory(Backend& runtime, int device, std::optional<Fault> fault)
      : runtime_(runtime), device_(device), fault_(fault) {}

  Backend& runtime_;
  const int device_;
  const std::optional<Fault> fault_;
  std::uint64_t words_ = 0;
  DeviceMemory memory_, report_;
  std::optional<Span> span_;
  Stream stream_;
};

std::uint32_t expectedCrc(std::uint64_t block, std::uint64_t words, std::uint64_t seed) {
  std::uint32_t crc = 0;
  for (auto i = block * kCopyBlockWords; i < std::min(words, (block + 1) * kCopyBlockWords); ++i)
    crc = cpu::crcOfWord(crc, patternWord(Pattern::Random, false, i, seed));
  return crc;
}

void compare(const std::vector<std::uint32_t>& seen, std::uint64_t words, std::uint64_t seed,
             CopyRound& round) {
  for (std::uint64_t block = 0; block < seen.size(); ++block) {
    if (seen[block] == expectedCrc(block, words, seed)) continue;
    if (round.bad_blocks++ == 0) round.first_bad_offset = block * kCopyBlockWords * kWord;
  }
}

/// The two ends of a copy, each with seeded data or nothing.
struct Ends {
  std::uint64_t words;
  DeviceMemory device, peer, crcs;
  std::optional<HostBuffer> host;
  Stream stream;
};

Result<Ends> makeEnds(const Runtime& runtime, CopyDirection direction, int device, int peer,
                      std::optional<int> node, std::uint64_t bytes) {
  Ends ends;
  ends.words = bytes / kWord / kCopyBlockWords * kCopyBlockWords;
  if (ends.words == 0) return fail(ErrorCode::InvalidInput, "nothing to copy");
  if (direction == CopyDirection::DeviceToPeer) {
    TRY_OK(runtime.select(peer));
    TRY(memory, allocate(runtime, ends.words * kWord));
    ends.peer = std::move(memory);
  }
  TRY_OK(runtime.select(device));
  TRY(memory, allocate(runtime, ends.words * kWord));
  TRY(stream, makeStream(runtime));
  ends.device = std::move(memory), ends.stream = std::move(stream);
  if (direction != CopyDirection::DeviceToPeer) {
    TRY(host, HostBuffer::make(runtime, ends.words * kWord, node));
    ends.host = std::move(host);
  }
  return ends;
}

Result<std::vector<std::uint32_t>> crcsOn(Backend& runtime, int device, const DeviceMemory& memory,
                                          std::uint64_t words) {
  TRY_OK(runtime.select(device));
  std::vector<std::uint32_t> seen(words / kCopyBlockWords);
  TRY(crcs, allocate(runtime, seen.size() * sizeof seen[0]));
  TRY(stream, makeStream(runtime));
  TRY_OK(runtime.kernels().blockCrcs(stream.get(), as<std::uint64_t>(memory), words,
                                     as<std::uint32_t>(crcs)));
  TRY_OK(runtime.copy(seen.data(), crcs.get(), seen.size() * sizeof seen[0], CopyKind::DeviceToHost,
                      stream.get()));
  TRY_OK(runtime.await(stream.get()));
  return seen;
}

}  // namespace

Result<std::unique_ptr<MemoryWork>> makeGpuMemory(Backend& runtime, std::uint64_t bytes, int device,
                                                  std::optional<Fault> fault) {
  return GpuMemory::make(runtime, bytes, device, fault);
}

Result<CopyRound> copyOver(Backend& runtime, CopyDirection direction, int device, int peer,
                           std::optional<int> node, std::uint64_t bytes, std::uint64_t seed,
                           std::optional<Fault> fault) {
  TRY(ends, makeEnds(runtime, direction, device, peer, node, bytes));
  const auto stream = ends.stream.get();
  auto* host = static_cast<std::uint64_t*>(ends.host ? ends.host->data() : nullptr);
  const std::uint64_t size = ends.words * kWord;
  if (direction == CopyDirection::HostToDevice) {
    for (std::uint64_t i = 0; i < ends.words; ++i)
      host[i] = patternWord(Pattern::Random, false, i, seed);
  } else {
    TRY_OK(runtime.kernels().walkMemory(stream, {false, false, true, {}, {Pattern::Random, false}},
                                        as<std::uint64_t>(ends.device), ends.words, seed, nullptr));
  }
  TRY(span, Span::make(runtime));
  TRY_OK(span.start(stream));
  switch (direction) {
    case CopyDirection::HostToDevice:
      TRY_OK(runtime.copy(ends.device.get(), host, size, CopyKind::HostToDevice, stream));
      break;
    case CopyDirection::DeviceToHost:
      TRY_OK(runtime.copy(host, ends.device.get(), size, CopyKind::DeviceToHost, stream));
      break;
    case CopyDirection::DeviceToPeer:
      TRY_OK(runtime.copyToPeer(ends.peer.get(), peer, ends.device.get(), device, size, stream));
      break;
  }
  TRY(seconds, span.stop(stream));
  CopyRound round{size, seconds, 0, 0, ends.host ? ends.host->node() : std::nullopt};
  const bool broken = fault && fault->kind == FaultKind::CopyBit;
  if (direction == CopyDirection::DeviceToHost) {
    if (broken) host[fault->at % ends.words] ^= 1ULL << (fault->bit % 64);
    std::vector<std::uint32_t> seen(ends.words / kCopyBlockWords);
    for (std::uint64_t i = 0; i < ends.words; ++i)
      seen[i / kCopyBlockWords] = cpu::crcOfWord(seen[i / kCopyBlockWords], host[i]);
    compare(seen, ends.words, seed, round);
    return round;
  }
  const auto& end = direction == CopyDirection::DeviceToPeer ? ends.peer : ends.device;
  const int where = direction == CopyDirection::DeviceToPeer ? peer : device;
  if (broken) {
    TRY_OK(runtime.kernels().flipBit(stream, as<std::uint64_t>(end) + fault->at % ends.words, kWord,
                                     fault->bit));
    TRY_OK(runtime.await(stream));
  }
  TRY(seen, crcsOn(runtime, where, end, ends.words));
  compare(seen, ends.words, seed, round);
  return round;
}

}  // namespace muster::burn::gpu
