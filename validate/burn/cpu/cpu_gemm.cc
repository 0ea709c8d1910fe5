// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/cpu_gemm.h"

#include "validate/burn/cpu/blas.h"
#include "validate/burn/cpu/kernels.h"
#include "validate/burn/cpu/lanes.h"

#include <cstring>
#include <limits>

namespace muster::burn::cpu {
namespace {

constexpr std::size_t kFirstBad = 8;

template <class Value>
void flipBit(Value& value, int bit) {
  std::conditional_t<sizeof(Value) == 8, std::uint64_t, std::uint32_t> bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits ^= decltype(bits){1} << (static_cast<unsigned>(bit) % (sizeof bits * 8));
  std::memcpy(&value, &bits, sizeof bits);
}

template <class Value>
class CpuGemm final : public GemmWork {
 public:
  CpuGemm(const GemmPlan& plan, std::vector<int> cpus, std::optional<Fault> fault)
      : plan_(plan),
        size_(static_cast<std::size_t>(plan.n)),
        cpus_(std::move(cpus)),
        fault_(fault),
        a_(size_ * size_),
        b_(size_ * size_),
        c_(cpus_.size()) {
    const auto lanes = cpus_.size();
    onEach(cpus_,
           [&](int lane) {  // each lane touches its output first: the memory is near its core
             c_[static_cast<std::size_t>(lane)].assign(size_ * size_, Value{});
             for (std::size_t i = static_cast<std::size_t>(lane); i < a_.size(); i += lanes)
               a_[i] = operand(streamA(plan_.seed), i), b_[i] = operand(streamB(plan_.seed), i);
           });
    for (std::uint64_t i = 0; i < size_; ++i) {
      row_weights_.push_back(weight(streamRows(plan_.seed), i));
      column_weights_.push_back(weight(streamColumns(plan_.seed), i));
    }
    if (fault_ && fault_->kind == FaultKind::InputBit)
      flipBit(a_[fault_->at % a_.size()], fault_->bit);
  }

  Result<void> setGolden(std::vector<std::uint64_t> sums) override {
    if (sums.size() != static_cast<std::size_t>(plan_.tiles()))
      return fail(ErrorCode::Internal, "a golden of another size");
    golden_ = std::move(sums);
    return {};
  }

  Result<GemmRound> multiply(std::uint64_t products, bool verify) override {
    if (verify && golden_.empty()) return fail(ErrorCode::Internal, "no golden to verify against");
    TRY_OK(Blas::ofThisHost().reserve(cpus_.size()));
    const auto each = (products + cpus_.size() - 1) / cpus_.size();
    std::vector<GemmRound> rounds(cpus_.size());
    const auto start = std::chrono::steady_clock::now();
    onEach(cpus_, [&](int lane) {
      auto& round = rounds[static_cast<std::size_t>(lane)];
      for (std::uint64_t i = 0; i < each; ++i, ++round.products) {
        once(lane);
        if (verify) check(lane, round);
      }
    });
    GemmRound sum;
    sum.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    for (auto& round : rounds) {
      sum.products += round.products;
      sum.bad_tiles += round.bad_tiles;
      std::move(round.first.begin(), round.first.end(), std::back_inserter(sum.first));
    }
    return sum;
  }

  Result<std::vector<std::uint64_t>> tileSums() override {
    std::vector<std::uint64_t> sums;
    for (int tile = 0; tile < plan_.tiles(); ++tile) sums.push_back(sumOf(0, tile).sum);
    return sums;
  }

  Result<SideSums> sideSums() override {
    const auto side = static_cast<std::size_t>(plan_.tilesPerSide());
    SideSums sums{std::vector<double>(size_ * side), std::vector<double>(size_ * side)};
    for (std::size_t i = 0; i < size_; ++i)
      for (std::size_t j = 0; j < size_; ++j) {
        const double value = c_[0][i * size_ + j];
        sums.rows[i * side + j / kTile] += value;
        sums.columns[i / kTile * size_ + j] += value;
      }
    return sums;
  }

  Result<std::uint64_t> wrongInputs() override {
    std::vector<std::uint64_t> wrong(cpus_.size());
    onEach(cpus_, [&](int lane) {
      for (std::size_t i = static_cast<std::size_t>(lane); i < a_.size(); i += cpus_.size())
        wrong[static_cast<std::size_t>(lane)] +=
            static_cast<std::uint64_t>(!same(a_[i], operand(streamA(plan_.seed), i))) +
            static_cast<std::uint64_t>(!same(b_[i], operand(streamB(plan_.seed), i)));
    });
    std::uint64_t sum = 0;
    for (const auto each : wrong) sum += each;
    return sum;
  }

 private:
  static bool same(Value seen, Value expected) {
    return std::memcmp(&seen, &expected, sizeof seen) == 0;
  }

  Value operand(std::uint64_t stream, std::uint64_t index) const {
    const auto& row = rowOf(plan_.dtype);
    if (plan_.operands == Operands::Integer)
      return static_cast<Value>(integerOperand(stream, index, row.integer_limit));
    return static_cast<Value>(randomOperand(stream, index, row.significant_bits));
  }

  void once(int lane) {
    auto* c = c_[static_cast<std::size_t>(lane)].data();
    const auto& blas = Blas::ofThisHost();
    blas.multiply(a_.data(), b_.data(), c, plan_.n);
    if (!fault_ || lane != 0 || made_++ < fault_->after) return;
    auto& value = c[fault_->at % (size_ * size_)];
    if (fault_->kind == FaultKind::OutputBit) flipBit(value, fault_->bit);
    if (fault_->kind == FaultKind::NotANumber) value = std::numeric_limits<Value>::quiet_NaN();
    if (fault_->kind == FaultKind::SlowKernel)
      for (int i = 1; i < kSlowKernelTimes; ++i) blas.multiply(a_.data(), b_.data(), c, plan_.n);
  }

  const Value* tileAt(int lane, int tile) const {
    const auto side = plan_.tilesPerSide();
    return c_[static_cast<std::size_t>(lane)].data() +
           static_cast<std::size_t>(tile / side) * kTile * size_ +
           static_cast<std::size_t>(tile % side) * kTile;
  }

  TileSum sumOf(int lane, int tile) const {
    const auto* w = row_weights_.data() + tile / plan_.tilesPerSide() * kTile;
    const auto* v = column_weights_.data() + tile % plan_.tilesPerSide() * kTile;
    return plan_.operands == Operands::Integer ? integerSum(tileAt(lane, tile), size_, w, v)
                                               : bitSum(tileAt(lane, tile), size_, w, v);
  }

  void check(int lane, GemmRound& round) const {
    for (int tile = 0; tile < plan_.tiles(); ++tile) {
      const auto seen = sumOf(lane, tile);
      if (seen.odd == 0 && seen.sum == golden_[static_cast<std::size_t>(tile)]) continue;
      ++round.bad_tiles;
      if (round.first.size() >= kFirstBad) continue;
      BadTile bad{cpus_[static_cast<std::size_t>(lane)], true, tile, round.products, seen.odd, {}};
      if (round.first.empty())
        for (std::size_t i = 0; i < kTile; ++i)
          for (std::size_t j = 0; j < kTile; ++j)
            bad.values.push_back(tileAt(lane, tile)[i * size_ + j]);
      round.first.push_back(std::move(bad));
    }
  }

  const GemmPlan plan_;
  const std::size_t size_;
  const std::vector<int> cpus_;
  const std::optional<Fault> fault_;
  std::uint64_t made_ = 0;  ///< products of lane 0, where faults are
  std::vector<Value> a_, b_;
  std::vector<std::vector<Value>> c_;  ///< one a lane
  std::vector<std::uint64_t> golden_, row_weights_, column_weights_;
};

}  // namespace

Result<std::unique_ptr<GemmWork>> makeCpuGemm(const GemmPlan& plan, std::vector<int> cpus,
                                              std::optional<Fault> fault) {
  if (plan.n < kTile || plan.n % kTile != 0 || plan.n > rowOf(plan.dtype).max_n)
    return fail(ErrorCode::InvalidInput, fmt::format("n = {} is not a multiple of {} up to {}",
                                                     plan.n, kTile, rowOf(plan.dtype).max_n));
  try {
    if (plan.dtype == Dtype::Fp32)
      return std::make_unique<CpuGemm<float>>(plan, std::move(cpus), fault);
    if (plan.dtype == Dtype::Fp64)
      return std::make_unique<CpuGemm<double>>(plan, std::move(cpus), fault);
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::Unavailable,
                fmt::format("no memory for products of {}x{}", plan.n, plan.n));
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("the host's processors are tested in fp64 and fp32, not in {}",
                          rowOf(plan.dtype).name));
}

}  // namespace muster::burn::cpu
