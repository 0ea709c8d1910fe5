// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/operand.h"

namespace muster::burn::gpu {
namespace {

/// E2M1 holds no 0.25: its random elements are whole quarters, stored four times as large.
int elementShift(const GemmPlan& plan) {
  return plan.dtype == Dtype::Nvfp4 && plan.operands == Operands::Random ? 2 : 0;
}

}  // namespace

Result<Operand> Operand::make(Backend& backend, const GemmPlan& plan, bool is_a, Float8 float8,
                              StreamHandle stream) {
  const auto& row = rowOf(plan.dtype);
  Operand operand;
  operand.backend_ = &backend;
  operand.encoding_ = encodingOf(plan.dtype, is_a, float8);
  operand.n_ = plan.n;
  const bool sparse = is_a && row.sparse;
  operand.values_ =
      static_cast<std::uint64_t>(plan.n) * static_cast<std::uint64_t>(plan.n) / (sparse ? 2 : 1);
  operand.rule_ = {plan.operands == Operands::Integer,
                   row.integer_limit,
                   row.significant_bits,
                   is_a ? streamA(plan.seed) : streamB(plan.seed),
                   row.scale_block,
                   elementShift(plan),
                   sparse};
  TRY(memory, allocate(backend, offsetOf(operand.encoding_, operand.values_)));
  operand.memory_ = std::move(memory);
  TRY_OK(backend.kernels().fillOperands(stream, operand.encoding_, operand.rule_,
                                        operand.memory_.get(), operand.values_));
  if (sparse) TRY_OK(operand.fillPlaces(stream));
  if (row.scale_block == 0) return operand;
  operand.scale_encoding_ = plan.dtype == Dtype::Nvfp4 ? ScaleEncoding::E4m3 : ScaleEncoding::E8m0;
  TRY(scales, allocate(backend, operand.scaleRule().count()));
  operand.scales_ = std::move(scales);
  TRY_OK(
      backend.kernels().fillScales(stream, operand.scaleRule(), as<std::uint8_t>(operand.scales_)));
  return operand;
}

Result<void> Operand::countWrong(StreamHandle stream, unsigned long long* wrong) const {
  auto& kernels = backend_->kernels();
  TRY_OK(kernels.countWrongOperands(stream, encoding_, rule_, memory_.get(), values_, wrong));
  if (places_) TRY_OK(kernels.countWrongPlaces(stream, rule_, places(), placeWords(), wrong));
  if (!scales_) return {};
  return kernels.countWrongScales(stream, scaleRule(), as<std::uint8_t>(scales_), wrong);
}

Result<void> Operand::flipBit(StreamHandle stream, std::uint64_t at, int bit) const {
  return backend_->kernels().flipBit(stream,
                                     as<unsigned char>(memory_) + offsetOf(encoding_, at % values_),
                                     bytesOf(encoding_), bit);
}

Result<void> Operand::fillPlaces(StreamHandle stream) {
  TRY(places, allocate(*backend_, placeWords() * sizeof(std::uint32_t)));
  places_ = std::move(places);
  return backend_->kernels().fillPlaces(stream, rule_, as<std::uint32_t>(places_), placeWords());
}

Result<void> Operand::flipPlaceBit(StreamHandle stream, std::uint64_t at, int bit) const {
  const auto isValid = [](std::uint32_t places) { return (places & 3) < places >> 2; };
  if (!places_) return {};
  const std::uint64_t groups = values_ / 2;
  at %= groups;
  while (!isValid(keptPlaces(rule_.stream, at) ^ 1u << bit % 4)) at = (at + 1) % groups;
  return backend_->kernels().flipBit(stream, as<unsigned char>(places_) + at / 2, 1,
                                     static_cast<int>(at % 2) * 4 + bit % 4);
}

Result<void> Operand::flipScaleBit(StreamHandle stream, std::uint64_t at, int bit) const {
  if (!scales_) return {};
  return backend_->kernels().flipBit(stream, as<unsigned char>(scales_) + at % scaleRule().count(),
                                     1, bit);
}

}  // namespace muster::burn::gpu
