// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/operand.h"

namespace muster::burn::gpu {

Result<Operand> Operand::make(Backend& backend, const GemmPlan& plan, bool is_a, Float8 float8,
                              StreamHandle stream) {
  const auto& row = rowOf(plan.dtype);
  Operand operand;
  operand.backend_ = &backend;
  operand.encoding_ = encodingOf(plan.dtype, is_a, float8);
  operand.values_ = static_cast<std::uint64_t>(plan.n) * static_cast<std::uint64_t>(plan.n);
  operand.rule_ = {plan.operands == Operands::Integer, row.integer_limit, row.significant_bits,
                   is_a ? streamA(plan.seed) : streamB(plan.seed)};
  TRY(memory,
      allocate(backend, operand.values_ * static_cast<std::uint64_t>(bytesOf(operand.encoding_))));
  operand.memory_ = std::move(memory);
  TRY_OK(backend.kernels().fillOperands(stream, operand.encoding_, operand.rule_,
                                        operand.memory_.get(), operand.values_));
  return operand;
}

Result<void> Operand::countWrong(StreamHandle stream, unsigned long long* wrong) const {
  return backend_->kernels().countWrongOperands(stream, encoding_, rule_, memory_.get(), values_,
                                                wrong);
}

Result<void> Operand::flipBit(StreamHandle stream, std::uint64_t at, int bit) const {
  const int bytes = bytesOf(encoding_);
  return backend_->kernels().flipBit(
      stream, as<unsigned char>(memory_) + at % values_ * static_cast<std::uint64_t>(bytes), bytes,
      bit);
}

}  // namespace muster::burn::gpu
