// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/cpu_memory.h"

#include "validate/burn/cpu/kernels.h"
#include "validate/burn/cpu/lanes.h"

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace muster::burn::cpu {
namespace {

constexpr std::size_t kFirstBad = 8;
constexpr std::size_t kWord = sizeof(std::uint64_t);

double secondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

/// Anonymous pages; whole chunks.
class Region {
 public:
  explicit Region(std::uint64_t bytes) : words_(bytes / kWord / kChunkWords * kChunkWords) {
    void* memory = words_ ? mmap(nullptr, words_ * kWord, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                          : MAP_FAILED;
    data_ = memory == MAP_FAILED ? nullptr : static_cast<std::uint64_t*>(memory);
    if (data_) madvise(data_, words_ * kWord, MADV_HUGEPAGE);
  }
  ~Region() {
    if (data_) munmap(data_, words_ * kWord);
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  std::uint64_t* data() const { return data_; }
  std::size_t words() const { return words_; }
  /// First word and end of a lane's share.
  std::pair<std::size_t, std::size_t> share(std::size_t lane, std::size_t lanes,
                                            std::size_t unit) const {
    const auto units = (words_ + unit - 1) / unit;
    return {std::min(words_, units * lane / lanes * unit),
            std::min(words_, units * (lane + 1) / lanes * unit)};
  }

 private:
  std::size_t words_;
  std::uint64_t* data_ = nullptr;
};

class CpuMemory final : public MemoryWork {
 public:
  CpuMemory(std::uint64_t bytes, std::vector<int> cpus, std::optional<Fault> fault)
      : region_(bytes), cpus_(std::move(cpus)), fault_(fault) {}
  bool good() const { return region_.data() != nullptr; }
  std::uint64_t bytes() const override { return region_.words() * kWord; }

  Result<StepResult> step(const MemoryStep& step, std::uint64_t seed) override {
    std::this_thread::sleep_for(step.hold);  // the test itself: cells are left alone
    std::vector<StepResult> parts(cpus_.size());
    const auto start = std::chrono::steady_clock::now();
    onEach(cpus_, [&](int lane) {
      walk(step, seed, static_cast<std::size_t>(lane), parts[static_cast<std::size_t>(lane)]);
    });
    StepResult sum;
    sum.seconds = secondsSince(start);
    sum.bytes_moved = bytes() * (static_cast<std::uint64_t>(step.read.has_value()) +
                                 static_cast<std::uint64_t>(step.write.has_value()));
    for (const auto& part : parts) {
      sum.wrong_words += part.wrong_words;
      sum.first.insert(sum.first.end(), part.first.begin(), part.first.end());
    }
    if (step.write && fault_ && fault_->kind == FaultKind::MemoryBit)
      region_.data()[fault_->at % region_.words()] ^= 1ULL << (fault_->bit % 64);
    return sum;
  }

  Result<double> copyRate() override {
    const std::size_t half = region_.words() / 2;
    const auto start = std::chrono::steady_clock::now();
    onEach(cpus_, [&](int lane) {
      const auto begin = half * static_cast<std::size_t>(lane) / cpus_.size(),
                 end = half * static_cast<std::size_t>(lane + 1) / cpus_.size();
      std::memcpy(region_.data() + half + begin, region_.data() + begin, (end - begin) * kWord);
    });
    return static_cast<double>(2 * half * kWord) / secondsSince(start);
  }

 private:
  void walk(const MemoryStep& step, std::uint64_t seed, std::size_t lane, StepResult& part) {
    const auto [begin, end] = region_.share(lane, cpus_.size(), kChunkWords);
    const auto chunks = (end - begin) / kChunkWords;
    for (std::size_t i = 0; i < chunks; ++i) {
      const auto at = begin + (step.downwards ? chunks - 1 - i : i) * kChunkWords;
      auto* words = region_.data() + at;
      if (step.read &&
          differences(words, kChunkWords, step.read->pattern, step.read->inverse, at, seed))
        name(*step.read, seed, at, part);
      if (step.write) write(words, kChunkWords, step.write->pattern, step.write->inverse, at, seed);
    }
  }

  /// Which words of a chunk are wrong. Read again: what was wrong only once is told by its count.
  void name(const MemoryWord& read, std::uint64_t seed, std::size_t at, StepResult& part) const {
    std::uint64_t wrong = 0;
    for (std::size_t i = at; i < at + kChunkWords; ++i) {
      const auto expected = patternWord(read.pattern, read.inverse, i, seed),
                 seen = region_.data()[i];
      if (seen == expected) continue;
      ++wrong;
      if (part.first.size() < kFirstBad) part.first.push_back({i * kWord, expected, seen});
    }
    part.wrong_words += std::max<std::uint64_t>(wrong, 1);
  }

  Region region_;
  const std::vector<int> cpus_;
  const std::optional<Fault> fault_;
};

}  // namespace

Result<std::unique_ptr<MemoryWork>> makeCpuMemory(std::uint64_t bytes, std::vector<int> cpus,
                                                  std::optional<Fault> fault) {
  auto memory = std::make_unique<CpuMemory>(bytes, std::move(cpus), fault);
  if (!memory->good())
    return fail(ErrorCode::Unavailable, fmt::format("no memory region of {} bytes", bytes));
  return memory;
}

Result<CopyRound> copyMemory(std::uint64_t bytes, std::uint64_t seed, const std::vector<int>& cpus,
                             std::optional<Fault> fault) {
  Region from(bytes), to(bytes);
  if (!from.data() || !to.data())
    return fail(ErrorCode::Unavailable,
                fmt::format("no memory for two buffers of {} bytes", bytes));
  std::atomic<std::uint64_t> bad_blocks = 0, first_bad = to.words();
  onEach(cpus, [&](int lane) {
    const auto [begin, end] =
        from.share(static_cast<std::size_t>(lane), cpus.size(), kCopyBlockWords);
    write(from.data() + begin, end - begin, Pattern::Random, false, begin, seed);
    std::memset(to.data() + begin, 0, (end - begin) * kWord);
  });
  const auto start = std::chrono::steady_clock::now();
  onEach(cpus, [&](int lane) {
    const auto [begin, end] =
        from.share(static_cast<std::size_t>(lane), cpus.size(), kCopyBlockWords);
    std::memcpy(to.data() + begin, from.data() + begin, (end - begin) * kWord);
  });
  CopyRound round{from.words() * kWord, secondsSince(start), 0, 0};
  if (fault && fault->kind == FaultKind::CopyBit)
    to.data()[fault->at % to.words()] ^= 1ULL << (fault->bit % 64);
  onEach(cpus, [&](int lane) {
    const auto [begin, end] =
        to.share(static_cast<std::size_t>(lane), cpus.size(), kCopyBlockWords);
    for (auto block = begin; block < end; block += kCopyBlockWords) {
      std::uint32_t seen = 0, expected = 0;
      for (auto i = block; i < std::min<std::size_t>(end, block + kCopyBlockWords); ++i) {
        seen = crcOfWord(seen, to.data()[i]);
        expected = crcOfWord(expected, patternWord(Pattern::Random, false, i, seed));
      }
      if (seen == expected) continue;
      ++bad_blocks;
      for (auto first = first_bad.load();
           block < first && !first_bad.compare_exchange_weak(first, block);) {
      }
    }
  });
  round.bad_blocks = bad_blocks;
  round.first_bad_offset = first_bad * kWord;
  return round;
}

}  // namespace muster::burn::cpu
