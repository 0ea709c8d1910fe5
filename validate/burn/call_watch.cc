// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/call_watch.h"

#include <fmt/format.h>

namespace muster::burn {
namespace {

using Clock = std::chrono::steady_clock;
/// A walk over memory that is slower than this hangs.
constexpr std::uint64_t kSlowestBytesPerMillisecond = 500'000;

/// Notes calls of one device.
class Notebook {
 public:
  Notebook(CallWatch& watch, std::size_t device, std::chrono::milliseconds bound)
      : watch_(watch), device_(device), bound_(bound) {}

  CallWatch::Pending note(std::string what, std::chrono::milliseconds more = {}) const {
    return {watch_, {device_, std::move(what), Clock::now(), bound_ + more}};
  }

 private:
  CallWatch& watch_;
  const std::size_t device_;
  const std::chrono::milliseconds bound_;
};

class WatchedGemm final : public GemmWork {
 public:
  WatchedGemm(std::unique_ptr<GemmWork> work, const Notebook& notebook)
      : work_(std::move(work)), notebook_(notebook) {}
  ~WatchedGemm() override {
    const auto pending = notebook_.note("freeing matrices");
    work_.reset();
  }
  Result<void> setGolden(std::vector<std::uint64_t> sums) override {
    const auto pending = notebook_.note("copying checksums to the device");
    return work_->setGolden(std::move(sums));
  }
  Result<GemmRound> multiply(std::uint64_t products, bool verify) override {
    const auto pending = notebook_.note(fmt::format("{} products", products));
    return work_->multiply(products, verify);
  }
  Result<std::vector<std::uint64_t>> tileSums() override {
    const auto pending = notebook_.note("summing tiles");
    return work_->tileSums();
  }
  Result<SideSums> sideSums() override {
    const auto pending = notebook_.note("summing rows and columns");
    return work_->sideSums();
  }
  Result<std::uint64_t> wrongInputs() override {
    const auto pending = notebook_.note("reading the operands again");
    return work_->wrongInputs();
  }

 private:
  std::unique_ptr<GemmWork> work_;
  const Notebook notebook_;
};

class WatchedMemory final : public MemoryWork {
 public:
  WatchedMemory(std::unique_ptr<MemoryWork> work, const Notebook& notebook)
      : work_(std::move(work)),
        notebook_(notebook),
        walk_(static_cast<std::int64_t>(work_->bytes() / kSlowestBytesPerMillisecond)) {}
  ~WatchedMemory() override {
    const auto pending = notebook_.note("freeing memory", walk_);
    work_.reset();
  }
  std::uint64_t bytes() const override { return work_->bytes(); }
  Result<StepResult> step(const MemoryStep& step, std::uint64_t seed) override {
    const auto pending = notebook_.note("a walk over memory", 2 * walk_ + step.hold);
    return work_->step(step, seed);
  }
  Result<double> copyRate() override {
    const auto pending = notebook_.note("copying memory", 2 * walk_);
    return work_->copyRate();
  }

 private:
  std::unique_ptr<MemoryWork> work_;
  const Notebook notebook_;
  const std::chrono::milliseconds walk_;
};

class WatchedDevice final : public Device {
 public:
  WatchedDevice(Device& device, const Notebook& notebook) : device_(device), notebook_(notebook) {}
  Identity identity() const override {
    const auto pending = notebook_.note("asking for its identity");
    return device_.identity();
  }
  std::vector<Dtype> dtypes() const override { return device_.dtypes(); }
  bool isByName(Dtype dtype) const override { return device_.isByName(dtype); }
  int preferredN(Dtype dtype) const override { return device_.preferredN(dtype); }
  Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan& plan) override {
    const auto pending = notebook_.note("preparing matrices");
    TRY(work, device_.prepareGemm(plan));
    return std::make_unique<WatchedGemm>(std::move(work), notebook_);
  }
  std::uint64_t freeBytes() const override {
    const auto pending = notebook_.note("asking for its free memory");
    return device_.freeBytes();
  }
  Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t bytes) override {
    const auto pending = notebook_.note(
        "taking memory",
        std::chrono::milliseconds(static_cast<std::int64_t>(bytes / kSlowestBytesPerMillisecond)));
    TRY(work, device_.prepareMemory(bytes));
    return std::make_unique<WatchedMemory>(std::move(work), notebook_);
  }
  std::vector<std::string> routes() const override { return device_.routes(); }
  Result<CopyRound> copy(const std::string& route, std::uint64_t bytes,
                         std::uint64_t seed) override {
    const auto pending = notebook_.note("copying from " + route);
    return device_.copy(route, bytes, seed);
  }
  Result<std::vector<UnitResult>> probeUnits(std::uint64_t seed) override {
    const auto pending = notebook_.note("a product on every unit");
    return device_.probeUnits(seed);
  }
  std::vector<UnitCache> unitCaches() const override { return device_.unitCaches(); }
  Result<CacheRound> probeUnitCache(UnitCache cache, std::uint64_t seed) override {
    const auto pending = notebook_.note("patterns in " + std::string(toString(cache)));
    return device_.probeUnitCache(cache, seed);
  }
  std::uint64_t lastCacheBytes() const override { return device_.lastCacheBytes(); }
  Telemetry sample() override {
    const auto pending = notebook_.note("reading its sensors");
    return device_.sample();
  }
  void inject(std::optional<Fault> fault) override { device_.inject(fault); }

 private:
  Device& device_;
  const Notebook notebook_;
};

}  // namespace

CallWatch::Pending::Pending(CallWatch& watch, PendingCall call) : watch_(watch) {
  std::lock_guard lock(watch_.mutex_);
  id_ = watch_.next_++;
  watch_.pending_.emplace(id_, std::move(call));
}

CallWatch::Pending::~Pending() {
  std::lock_guard lock(watch_.mutex_);
  watch_.pending_.erase(id_);
}

std::optional<PendingCall> CallWatch::overdue(Clock::time_point now) const {
  std::lock_guard lock(mutex_);
  std::optional<PendingCall> worst;
  for (const auto& [id, call] : pending_)
    if (now - call.began > call.bound && (!worst || call.began < worst->began)) worst = call;
  return worst;
}

std::unique_ptr<Device> watched(Device& device, std::size_t number, CallWatch& watch,
                                std::chrono::milliseconds bound) {
  return std::make_unique<WatchedDevice>(device, Notebook(watch, number, bound));
}

}  // namespace muster::burn
