// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cuda/cuda_gemm.h"

#include "validate/burn/cuda/kernels.h"
#include "validate/burn/cuda/matmul.h"

#include <algorithm>
#include <array>

namespace muster::burn::cuda {
namespace {

struct Operand {
  DeviceMemory memory;
  OperandRule rule;
};

class CudaGemm final : public GemmWork {
 public:
  static Result<std::unique_ptr<GemmWork>> make(const GemmPlan& plan, int device,
                                                cublasLtHandle_t handle,
                                                std::optional<Fault> fault) {
    auto work = std::unique_ptr<CudaGemm>(new CudaGemm(plan, device, fault));
    TRY_OK(work->prepare(handle));
    return work;
  }

  Result<void> setGolden(std::vector<std::uint64_t> sums) override {
    TRY_OK(here());
    if (sums.size() != static_cast<std::size_t>(plan_.tiles()))
      return fail(ErrorCode::Internal, "a golden of another size");
    TRY_OK(ok(cudaMemcpyAsync(golden_.get(), sums.data(), sums.size() * sizeof sums[0],
                              cudaMemcpyHostToDevice, compute_.get()),
              "cudaMemcpyAsync"));
    has_golden_ = true;
    return ok(cudaStreamSynchronize(compute_.get()), "cudaStreamSynchronize");
  }

  /// Two outputs in turn: a product waits for the check of the one before the last, a check for its
  /// product.
  Result<GemmRound> multiply(std::uint64_t products, bool verify) override {
    TRY_OK(here());
    if (verify && !has_golden_) return fail(ErrorCode::Internal, "no golden to verify against");
    TRY_OK(ok(cudaMemsetAsync(report_.get(), 0, sizeof(TileReport), compute_.get()),
              "cudaMemsetAsync"));
    TRY_OK(span_->start(compute_.get()));
    for (std::uint64_t i = 0; i < products; ++i) {
      auto& output = outputs_[i % 2];
      if (verify && i >= 2)
        TRY_OK(ok(cudaStreamWaitEvent(compute_.get(), output.checked.get(), 0),
                  "cudaStreamWaitEvent"));
      TRY_OK(once(output));
      if (verify) TRY_OK(check(output, i));
    }
    last_ = (products + 1) % 2;
    if (verify)
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(products, 2); ++i)
        TRY_OK(ok(cudaStreamWaitEvent(compute_.get(), outputs_[i].checked.get(), 0),
                  "cudaStreamWaitEvent"));
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
    TRY(memory, allocate(sums.size() * sizeof sums[0]));
    cuda::tileSums(compute_.get(), view(outputs_[last_]), as<std::uint64_t>(memory));
    TRY_OK(fetch(sums.data(), memory, sums.size() * sizeof sums[0]));
    return sums;
  }

  Result<SideSums> sideSums() override {
    TRY_OK(here());
    const auto count =
        static_cast<std::size_t>(plan_.n) * static_cast<std::size_t>(plan_.tilesPerSide());
    SideSums sums{std::vector<double>(count), std::vector<double>(count)};
    TRY(rows, allocate(count * sizeof(double)));
    TRY(columns, allocate(count * sizeof(double)));
    cuda::sideSums(compute_.get(), view(outputs_[last_]), as<double>(rows), as<double>(columns));
    TRY_OK(fetch(sums.rows.data(), rows, count * sizeof(double)));
    TRY_OK(fetch(sums.columns.data(), columns, count * sizeof(double)));
    return sums;
  }

  Result<std::uint64_t> wrongInputs() override {
    TRY_OK(here());
    TRY(memory, allocate(sizeof(unsigned long long)));
    TRY_OK(ok(cudaMemsetAsync(memory.get(), 0, sizeof(unsigned long long), compute_.get()),
              "cudaMemsetAsync"));
    for (const auto& operand : operands_)
      countWrongOperands(compute_.get(), plan_.dtype, operand.rule, operand.memory.get(), values(),
                         as<unsigned long long>(memory));
    unsigned long long wrong = 0;
    TRY_OK(fetch(&wrong, memory, sizeof wrong));
    return wrong;
  }

 private:
  struct Buffer {
    DeviceMemory c;
    Event multiplied, checked;
  };

  CudaGemm(const GemmPlan& plan, int device, std::optional<Fault> fault)
      : plan_(plan), device_(device), fault_(fault) {}

  Result<void> here() const { return ok(cudaSetDevice(device_), "cudaSetDevice"); }
  std::uint64_t values() const {
    return static_cast<std::uint64_t>(plan_.n) * static_cast<std::uint64_t>(plan_.n);
  }
  Output view(const Buffer& output) const {
    return {output.c.get(), outputOf(plan_.dtype),           plan_.operands == Operands::Random,
            plan_.n,        as<std::uint64_t>(row_weights_), as<std::uint64_t>(column_weights_)};
  }

  Result<void> prepare(cublasLtHandle_t handle) {
    TRY(compute, makeStream());
    TRY(checking, makeStream());
    compute_ = std::move(compute), checking_ = std::move(checking);
    TRY(span, Span::make());
    span_ = std::move(span);
    const auto& row = rowOf(plan_.dtype);
    for (const auto stream : {streamA(plan_.seed), streamB(plan_.seed)}) {
      TRY(memory, allocate(values() * static_cast<std::uint64_t>(bytesOf(plan_.dtype))));
      const OperandRule rule{plan_.operands == Operands::Integer, row.integer_limit,
                             row.significant_bits, stream};
      fillOperands(compute_.get(), plan_.dtype, rule, memory.get(), values());
      operands_.push_back({std::move(memory), rule});
    }
    for (auto& output : outputs_) {
      TRY(memory, allocate(values() * static_cast<std::uint64_t>(bytesOf(outputOf(plan_.dtype)))));
      TRY(multiplied, makeEvent());
      TRY(checked, makeEvent());
      output = {std::move(memory), std::move(multiplied), std::move(checked)};
    }
    const auto weights = static_cast<std::uint64_t>(plan_.n) * sizeof(std::uint64_t);
    TRY(rows, allocate(weights));
    TRY(columns, allocate(weights));
    TRY(golden, allocate(static_cast<std::uint64_t>(plan_.tiles()) * sizeof(std::uint64_t)));
    TRY(report, allocate(sizeof(TileReport)));
    row_weights_ = std::move(rows), column_weights_ = std::move(columns),
    golden_ = std::move(golden), report_ = std::move(report);
    fillWeights(compute_.get(), streamRows(plan_.seed), as<std::uint64_t>(row_weights_), plan_.n);
    fillWeights(compute_.get(), streamColumns(plan_.seed), as<std::uint64_t>(column_weights_),
                plan_.n);
    if (fault_ && fault_->kind == FaultKind::InputBit)
      flipBit(compute_.get(),
              as<unsigned char>(operands_[0].memory) +
                  fault_->at % values() * static_cast<std::uint64_t>(bytesOf(plan_.dtype)),
              bytesOf(plan_.dtype), fault_->bit);
    TRY_OK(launched("preparing operands"));
    TRY(matmul,
        Matmul::make(handle, plan_.dtype, plan_.n,
                     plan_.operands == Operands::Random ? Choice::SameOnAll : Choice::Fastest,
                     operands_[0].memory.get(), operands_[1].memory.get(), outputs_[0].c.get(),
                     compute_.get()));
    matmul_ = std::move(matmul);
    return ok(cudaStreamSynchronize(compute_.get()), "cudaStreamSynchronize");
  }

  Result<void> once(const Buffer& output) {
    const int times = fault_ && fault_->kind == FaultKind::SlowKernel ? kSlowKernelTimes : 1;
    for (int i = 0; i < times; ++i)
      TRY_OK(matmul_->run(operands_[0].memory.get(), operands_[1].memory.get(), output.c.get(),
                          compute_.get()));
    if (!fault_ || made_++ < fault_->after) return {};
    const auto n = static_cast<std::uint64_t>(plan_.n), row = fault_->at % values() / n,
               column = fault_->at % n;  // named row-major, kept column-major
    const int bytes = bytesOf(outputOf(plan_.dtype));
    auto* at = as<unsigned char>(output.c) + (column * n + row) * static_cast<std::uint64_t>(bytes);
    if (fault_->kind == FaultKind::OutputBit) flipBit(compute_.get(), at, bytes, fault_->bit);
    if (fault_->kind == FaultKind::NotANumber) setNan(compute_.get(), at, bytes);
    return {};
  }

  Result<void> check(const Buffer& output, std::uint64_t product) {
    TRY_OK(ok(cudaEventRecord(output.multiplied.get(), compute_.get()), "cudaEventRecord"));
    TRY_OK(ok(cudaStreamWaitEvent(checking_.get(), output.multiplied.get(), 0),
              "cudaStreamWaitEvent"));
    checkTiles(checking_.get(), view(output), as<std::uint64_t>(golden_), product,
               as<TileReport>(report_));
    TRY_OK(launched("checking tiles"));
    return ok(cudaEventRecord(output.checked.get(), checking_.get()), "cudaEventRecord");
  }

  Result<void> readReport(GemmRound& round) const {
    auto seen = std::make_unique<TileReport>();
    TRY_OK(fetch(seen.get(), report_, sizeof(TileReport)));
    round.bad_tiles = seen->bad;
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(seen->bad, kFirstBad); ++i) {
      const auto& row = seen->first[i];
      round.first.push_back({row.unit, row.tile, row.product, row.odd, {}});
    }
    if (!round.first.empty())
      round.first.front().values.assign(std::begin(seen->values), std::end(seen->values));
    return {};
  }

  Result<void> fetch(void* to, const DeviceMemory& from, std::size_t bytes) const {
    TRY_OK(launched("a kernel before reading its result"));
    TRY_OK(ok(cudaMemcpyAsync(to, from.get(), bytes, cudaMemcpyDeviceToHost, compute_.get()),
              "cudaMemcpyAsync"));
    return ok(cudaStreamSynchronize(compute_.get()), "cudaStreamSynchronize");
  }

  const GemmPlan plan_;
  const int device_;
  const std::optional<Fault> fault_;
  std::uint64_t made_ = 0;  ///< products
  std::vector<Operand> operands_;
  std::array<Buffer, 2> outputs_;
  DeviceMemory row_weights_, column_weights_, golden_, report_;
  std::optional<Matmul> matmul_;
  std::optional<Span> span_;
  Stream compute_, checking_;  ///< last: destroyed first, when nothing runs any more
  std::size_t last_ = 0;       ///< output of the last product
  bool has_golden_ = false;
};

}  // namespace

Result<std::unique_ptr<GemmWork>> makeCudaGemm(const GemmPlan& plan, int device,
                                               cublasLtHandle_t handle,
                                               std::optional<Fault> fault) {
  if (plan.n < kTile || plan.n % kTile != 0 || plan.n > rowOf(plan.dtype).max_n)
    return fail(ErrorCode::InvalidInput, fmt::format("n = {} is not a multiple of {} up to {}",
                                                     plan.n, kTile, rowOf(plan.dtype).max_n));
  return CudaGemm::make(plan, device, handle, fault);
}

}  // namespace muster::burn::cuda
