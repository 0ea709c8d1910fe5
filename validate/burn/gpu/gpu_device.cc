// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/gpu_device.h"

#include "validate/burn/gpu/gpu_gemm.h"
#include "validate/burn/gpu/gpu_memory.h"

#include <algorithm>
#include <array>

namespace muster::burn::gpu {
namespace {

constexpr std::uint64_t kSpareBytes = 1ULL << 30;  ///< for reports, workspaces and the driver

constexpr std::array kHostRoutes = std::to_array<std::pair<std::string_view, CopyDirection>>(
    {{"host to device", CopyDirection::HostToDevice},
     {"device to host", CopyDirection::DeviceToHost}});

struct Peer {
  int number;
  std::string route;
};

CacheRound roundOf(const CacheReport& seen) {
  CacheRound round;
  round.wrong_words = seen.bad.wrong;
  for (const auto words : seen.words) round.words += words, round.units += words ? 1 : 0;
  for (std::uint64_t i = 0; i < std::min<std::uint64_t>(seen.bad.wrong, kFirstBad); ++i) {
    const auto& row = seen.bad.first[i];
    round.first.push_back({row.index * sizeof(std::uint64_t), row.expected, row.seen, row.unit});
  }
  return round;
}

class GpuDevice final : public Device {
 public:
  GpuDevice(std::shared_ptr<Backend> runtime, int number, GpuFacts facts, std::vector<Peer> peers)
      : runtime_(std::move(runtime)),
        number_(number),
        facts_(std::move(facts)),
        peers_(std::move(peers)) {}

  Identity identity() const override {
    return {std::string(runtime_->kind()),
            facts_.model,
            facts_.serial,
            facts_.pci,
            facts_.units,
            facts_.library};
  }

  std::vector<Dtype> dtypes() const override { return facts_.dtypes; }
  bool isByName(Dtype dtype) const override {
    return Device::isByName(dtype) ||
           std::ranges::find(facts_.by_name, dtype) != facts_.by_name.end();
  }
  /// The larger, the less a check of n² values weighs against n³ products.
  int preferredN(Dtype dtype) const override {
    return std::min(rowOf(dtype).max_n, dtype == Dtype::Fp64 || dtype == Dtype::Tf32 ||
                                                dtype == Dtype::Fp32 || rowOf(dtype).sparse
                                            ? 8192
                                            : 16384);
  }

  Result<std::unique_ptr<GemmWork>> prepareGemm(const GemmPlan& plan) override {
    return makeGpuGemm(*runtime_, plan, number_, facts_.float8, fault_);
  }

  std::uint64_t freeBytes() const override {
    if (!runtime_->select(number_)) return 0;
    const auto free = runtime_->freeBytes();
    return free && *free > kSpareBytes ? *free - kSpareBytes : 0;
  }
  Result<std::unique_ptr<MemoryWork>> prepareMemory(std::uint64_t bytes) override {
    return makeGpuMemory(*runtime_, bytes, number_, fault_);
  }

  std::vector<std::string> routes() const override {
    std::vector<std::string> routes;
    for (const auto& [route, direction] : kHostRoutes) routes.emplace_back(route);
    for (const auto& peer : peers_) routes.push_back(peer.route);
    return routes;
  }
  Result<CopyRound> copy(const std::string& route, std::uint64_t bytes,
                         std::uint64_t seed) override {
    for (const auto& [name, direction] : kHostRoutes)
      if (route == name)
        return copyOver(*runtime_, direction, number_, number_, facts_.memory_node, bytes, seed,
                        fault_);
    for (const auto& peer : peers_)
      if (route == peer.route)
        return copyOver(*runtime_, CopyDirection::DeviceToPeer, number_, peer.number, {}, bytes,
                        seed, fault_);
    return fail(ErrorCode::InvalidInput, "this GPU has no route " + route);
  }

  Result<std::vector<UnitResult>> probeUnits(std::uint64_t seed) override {
    TRY_OK(runtime_->select(number_));
    TRY(report, allocate(*runtime_, sizeof(UnitReport)));
    TRY(stream, makeStream(*runtime_));
    TRY_OK(runtime_->setBytes(report.get(), 0, sizeof(UnitReport), stream.get()));
    TRY_OK(runtime_->kernels().probeUnits(stream.get(), seed, facts_.units * kProbeBlocksPerUnit,
                                          as<UnitReport>(report)));
    auto seen = std::make_unique<UnitReport>();
    TRY_OK(runtime_->copy(seen.get(), report.get(), sizeof(UnitReport), CopyKind::DeviceToHost,
                          stream.get()));
    TRY_OK(runtime_->await(stream.get()));
    std::vector<UnitResult> units;
    for (int unit = 0; unit < kMaxUnits; ++unit)
      if (seen->products[unit]) units.push_back({unit, seen->products[unit], seen->wrong[unit]});
    return units;
  }

  std::vector<UnitCache> unitCaches() const override {
    return {UnitCache::SharedMemory, UnitCache::L1};
  }
  std::uint64_t lastCacheBytes() const override { return facts_.last_cache_bytes; }
  Result<CacheRound> probeUnitCache(UnitCache cache, std::uint64_t seed) override {
    TRY_OK(runtime_->select(number_));
    TRY(report, allocate(*runtime_, sizeof(CacheReport)));
    TRY(stream, makeStream(*runtime_));
    TRY_OK(runtime_->setBytes(report.get(), 0, sizeof(CacheReport), stream.get()));
    const bool broken = fault_ && fault_->kind == FaultKind::CacheBit;
    CacheProbe probe{seed, kL1Words, broken ? static_cast<std::int64_t>(fault_->at) : -1,
                     broken ? fault_->bit : 0};
    const int blocks = facts_.units * kProbeBlocksPerUnit;
    DeviceMemory words;
    if (cache == UnitCache::SharedMemory) {
      probe.words = facts_.shared_bytes / static_cast<int>(sizeof(std::uint64_t));
      TRY_OK(runtime_->kernels().probeShared(stream.get(), probe, blocks, as<CacheReport>(report)));
    } else {
      TRY(memory, allocate(*runtime_,
                           static_cast<std::uint64_t>(blocks) * kL1Words * sizeof(std::uint64_t)));
      words = std::move(memory);
      TRY_OK(runtime_->kernels().probeL1(stream.get(), probe, blocks, as<std::uint64_t>(words),
                                         as<CacheReport>(report)));
    }
    auto seen = std::make_unique<CacheReport>();
    TRY_OK(runtime_->copy(seen.get(), report.get(), sizeof(CacheReport), CopyKind::DeviceToHost,
                          stream.get()));
    TRY_OK(runtime_->await(stream.get()));
    return roundOf(*seen);
  }

  Telemetry sample() override { return runtime_->sample(number_); }
  void inject(std::optional<Fault> fault) override { fault_ = fault; }

 private:
  const std::shared_ptr<Backend> runtime_;
  const int number_;
  const GpuFacts facts_;
  const std::vector<Peer> peers_;
  std::optional<Fault> fault_;
};

}  // namespace

Result<Devices> openGpus(std::shared_ptr<Backend> runtime) {
  TRY(count, runtime->count());
  std::vector<GpuFacts> all;
  for (int number = 0; number < count; ++number) {
    TRY(facts, runtime->facts(number));
    all.push_back(std::move(facts));
  }
  Devices devices;
  for (int number = 0; number < count; ++number) {
    std::vector<Peer> peers;
    TRY_OK(runtime->select(number));
    for (int other = 0; other < count; ++other) {
      if (other == number) continue;
      TRY(reached, runtime->reach(number, other));
      if (reached)
        peers.push_back({other, "device to " + all[static_cast<std::size_t>(other)].pci});
    }
    devices.push_back(std::make_unique<GpuDevice>(
        runtime, number, all[static_cast<std::size_t>(number)], std::move(peers)));
  }
  return devices;
}

}  // namespace muster::burn::gpu
