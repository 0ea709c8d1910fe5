// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/gpu_gemm.h"

#include "validate/burn/gpu/operand.h"

#include <algorithm>
#include <array>

namespace muster::burn::gpu {
namespace {

class GpuGemm final : public GemmWork {
 public:
  static Result<std::unique_ptr<GemmWork>> make(Backend& runtime, const GemmPlan& plan, int device,
                                                Float8 float8, std::optional<Fault> fault) {
    auto work = std::unique_ptr<GpuGemm>(new GpuGemm(runtime, plan, device, fault));
    TRY_OK(work->here());
    TRY_OK(work->prepare(float8));
    return work;
  }

  Result<void> setGolden(std::vector<std::uint64_t> sums) override {
    TRY_OK(here());
    if (sums.size() != static_cast<std::size_t>(plan_.tiles()))
      return fail(ErrorCode::Internal, "a golden of another size");
    TRY_OK(runtime_.copy(golden_.get(), sums.data(), sums.size() * sizeof sums[0],
                         CopyKind::HostToDevice, compute_.get()));
    has_golden_ = true;
    return runtime_.await(compute_.get());
  }

  /// Two outputs in turn: a product waits for the check of the one before the last, a check for its
  /// product.
  Result<GemmRound> multiply(std::uint64_t products, bool verify) override {
    TRY_OK(here());
    if (verify && !has_golden_) return fail(ErrorCode::Internal, "no golden to verify against");
    TRY_OK(runtime_.setBytes(report_.get(), 0, sizeof(TileReport), compute_.get()));
    TRY_OK(span_->start(compute_.get()));
    for (std::uint64_t i = 0; i < products; ++i) {
      auto& output = outputs_[i % 2];
      if (verify && i >= 2) TRY_OK(runtime_.follow(compute_.get(), output.checked.get()));
      TRY_OK(once(output));
      if (verify) TRY_OK(check(output, i));
    }
    last_ = (products + 1) % 2;
    if (verify)
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(products, 2); ++i)
        TRY_OK(runtime_.follow(compute_.get(), outputs_[i].checked.get()));
    GemmRound round;
    round.products = products;
    TRY(seconds, span_->stop(compute_.get()));
    round.seconds = seconds;
    if (verify) TRY_OK(readReport(round));
    return round;
  }

  Result<std::vector<std::uint64_t>> tileSums() override {
    TRY_OK(here());
    std::vector<std::uint64_t> sums(static_cast<std::size_t>(plan_.tiles()));
    TRY(memory, allocate(runtime_, sums.size() * sizeof sums[0]));
    TRY_OK(runtime_.kernels().tileSums(compute_.get(), view(outputs_[last_]),
                                       as<std::uint64_t>(memory)));
    TRY_OK(fetch(sums.data(), memory, sums.size() * sizeof sums[0]));
    return sums;
  }

  Result<SideSums> sideSums() override {
    TRY_OK(here());
    const auto count =
        static_cast<std::size_t>(plan_.n) * static_cast<std::size_t>(plan_.tilesPerSide());
    SideSums sums{std::vector<double>(count), std::vector<double>(count)};
    TRY(rows, allocate(runtime_, count * sizeof(double)));
    TRY(columns, allocate(runtime_, count * sizeof(double)));
    TRY_OK(runtime_.kernels().sideSums(compute_.get(), view(outputs_[last_]), as<double>(rows),
                                       as<double>(columns)));
    TRY_OK(fetch(sums.rows.data(), rows, count * sizeof(double)));
    TRY_OK(fetch(sums.columns.data(), columns, count * sizeof(double)));
    return sums;
  }

  Result<std::uint64_t> wrongInputs() override {
    TRY_OK(here());
    TRY(memory, allocate(runtime_, sizeof(unsigned long long)));
    TRY_OK(runtime_.setBytes(memory.get(), 0, sizeof(unsigned long long), compute_.get()));
    for (const auto& operand : operands_)
      TRY_OK(operand.countWrong(compute_.get(), as<unsigned long long>(memory)));
    unsigned long long wrong = 0;
    TRY_OK(fetch(&wrong, memory, sizeof wrong));
    return wrong;
  }

 private:
  struct Buffer {
    DeviceMemory c;
    Event multiplied, checked;
  };

  GpuGemm(Backend& runtime, const GemmPlan& plan, int device, std::optional<Fault> fault)
      : runtime_(runtime), plan_(plan), device_(device), fault_(fault) {}

  Result<void> here() const { return runtime_.select(device_); }
  std::uint64_t values() const {
    return static_cast<std::uint64_t>(plan_.n) * static_cast<std::uint64_t>(plan_.n);
  }
  Output view(const Buffer& output) const {
    return {output.c.get(), outputOf(plan_.dtype),           plan_.operands == Operands::Random,
            plan_.n,        as<std::uint64_t>(row_weights_), as<std::uint64_t>(column_weights_)};
  }

  Result<void> prepare(Float8 float8) {
    TRY(compute, makeStream(runtime_));
    TRY(checking, makeStream(runtime_));
    compute_ = std::move(compute), checking_ = std::move(checking);
    TRY(span, Span::make(runtime_));
    span_ = std::move(span);
    for (const bool is_a : {true, false}) {
      TRY(operand, Operand::make(runtime_, plan_, is_a, float8, compute_.get()));
      operands_.push_back(std::move(operand));
    }
    for (auto& output : outputs_) {
      TRY(memory, allocate(runtime_,
                           values() * static_cast<std::uint64_t>(bytesOf(outputOf(plan_.dtype)))));
      TRY(multiplied, makeEvent(runtime_));
      TRY(checked, makeEvent(runtime_));
      output = {std::move(memory), std::move(multiplied), std::move(checked)};
    }
    TRY_OK(makeWeights());
    TRY(golden,
        allocate(runtime_, static_cast<std::uint64_t>(plan_.tiles()) * sizeof(std::uint64_t)));
    TRY(report, allocate(runtime_, sizeof(TileReport)));
    golden_ = std::move(golden), report_ = std::move(report);
    if (fault_ && fault_->kind == FaultKind::InputBit)
      TRY_OK(operands_[0].flipBit(compute_.get(), fault_->at, fault_->bit));
    if (fault_ && fault_->kind == FaultKind::ScaleBit)
      TRY_OK(operands_[1].flipScaleBit(compute_.get(), fault_->at, fault_->bit));
    if (fault_ && fault_->kind == FaultKind::PlaceBit)
      TRY_OK(operands_[0].flipPlaceBit(compute_.get(), fault_->at, fault_->bit));
    TRY_OK(makeProduct());
    return runtime_.await(compute_.get());
  }

  Result<void> makeWeights() {
    const auto bytes = static_cast<std::uint64_t>(plan_.n) * sizeof(std::uint64_t);
    TRY(rows, allocate(runtime_, bytes));
    TRY(columns, allocate(runtime_, bytes));
    row_weights_ = std::move(rows), column_weights_ = std::move(columns);
    auto& kernels = runtime_.kernels();
    TRY_OK(kernels.fillWeights(compute_.get(), streamRows(plan_.seed),
                               as<std::uint64_t>(row_weights_), plan_.n));
    return kernels.fillWeights(compute_.get(), streamColumns(plan_.seed),
                               as<std::uint64_t>(column_weights_), plan_.n);
  }

  Result<void> makeProduct() {
    if (rowOf(plan_.dtype).sparse) {
      product_ = makeSparseProduct(runtime_.kernels(), operands_[0].places(), plan_.n);
    } else {
      TRY(product, runtime_.prepareProduct(device_, plan_.dtype, plan_.n));
      product_ = std::move(product);
    }
    if (operands_[0].scales())
      TRY_OK(product_->setScales(operands_[0].scales(), operands_[1].scales()));
    const auto choice = plan_.operands == Operands::Random ? Choice::SameOnAll : Choice::Fastest;
    if (auto chosen = chooseAlgorithm(runtime_, *product_, choice, operands_[0].data(),
                                      operands_[1].data(), outputs_[0].c.get(), compute_.get());
        !chosen)
      return fail(std::move(chosen.error())
                      .within(fmt::format("the product of {} of {}x{} on this GPU",
                                          rowOf(plan_.dtype).name, plan_.n, plan_.n)));
    return {};
  }

  Result<void> once(const Buffer& output) {
    const int times = fault_ && fault_->kind == FaultKind::SlowKernel ? kSlowKernelTimes : 1;
    for (int i = 0; i < times; ++i)
      TRY_OK(
          product_->run(operands_[0].data(), operands_[1].data(), output.c.get(), compute_.get()));
    if (!fault_ || made_++ < fault_->after) return {};
    const auto n = static_cast<std::uint64_t>(plan_.n), row = fault_->at % values() / n,
               column = fault_->at % n;  // named row-major, kept column-major
    const int bytes = bytesOf(outputOf(plan_.dtype));
    auto* at = as<unsigned char>(output.c) + (column * n + row) * static_cast<std::uint64_t>(bytes);
    if (fault_->kind == FaultKind::OutputBit)
      return runtime_.kernels().flipBit(compute_.get(), at, bytes, fault_->bit);
    if (fault_->kind == FaultKind::NotANumber)
      return runtime_.kernels().setNan(compute_.get(), at, bytes);
    return {};
  }

  Result<void> check(const Buffer& output, std::uint64_t product) {
    TRY_OK(runtime_.record(output.multiplied.get(), compute_.get()));
    TRY_OK(runtime_.follow(checking_.get(), output.multiplied.get()));
    TRY_OK(runtime_.kernels().checkTiles(checking_.get(), view(output), as<std::uint64_t>(golden_),
                                         product, as<TileReport>(report_)));
    return runtime_.record(output.checked.get(), checking_.get());
  }

  Result<void> readReport(GemmRound& round) const {
    auto seen = std::make_unique<TileReport>();
    TRY_OK(fetch(seen.get(), report_, sizeof(TileReport)));
    round.bad_tiles = seen->bad;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(seen->bad, kFirstBad); ++i) {
      const auto& row = seen->first[i];
      round.first.push_back({row.unit, false, row.tile, row.product, row.odd, {}});
    }
    if (!round.first.empty())
      round.first.front().values.assign(std::begin(seen->values), std::end(seen->values));
    return {};
  }

  Result<void> fetch(void* to, const DeviceMemory& from, std::size_t bytes) const {
    TRY_OK(runtime_.copy(to, from.get(), bytes, CopyKind::DeviceToHost, compute_.get()));
    return runtime_.await(compute_.get());
  }

  Backend& runtime_;
  const GemmPlan plan_;
  const int device_;
  const std::optional<Fault> fault_;
  std::uint64_t made_ = 0;  ///< products
  std::vector<Operand> operands_;
  std::array<Buffer, 2> outputs_;
  DeviceMemory row_weights_, column_weights_, golden_, report_;
  std::unique_ptr<Product> product_;
  std::optional<Span> span_;
  Stream compute_, checking_;  ///< last: destroyed first, when nothing runs any more
  std::size_t last_ = 0;       ///< output of the last product
  bool has_golden_ = false;
};

}  // namespace

Result<std::unique_ptr<GemmWork>> makeGpuGemm(Backend& runtime, const GemmPlan& plan, int device,
                                              Float8 float8, std::optional<Fault> fault) {
  if (plan.n < kTile || plan.n % kTile != 0 || plan.n > rowOf(plan.dtype).max_n)
    return fail(ErrorCode::InvalidInput, fmt::format("n = {} is not a multiple of {} up to {}",
                                                     plan.n, kTile, rowOf(plan.dtype).max_n));
  return GpuGemm::make(runtime, plan, device, float8, fault);
}

}  // namespace muster::burn::gpu
