// SPDX-License-Identifier: Apache-2.0
// A or B of a product in a GPU's memory: made there, and read again there.
#pragma once

#include "validate/burn/gpu/backend.h"
#include "validate/burn/gpu/handles.h"

namespace muster::burn::gpu {

class Operand {
 public:
  /// Fills it on the stream. Errors: Unavailable (memory), Internal
  static Result<Operand> make(Backend& backend, const GemmPlan& plan, bool is_a, Float8 float8,
                              StreamHandle stream);

  const void* data() const { return memory_.get(); }
  /// Null: its format has none.
  const void* scales() const { return scales_.get(); }
  /// Of a sparse operand; null: all values are kept.
  const std::uint32_t* places() const { return as<std::uint32_t>(places_); }
  /// Adds to `wrong`, in device memory, the values that are not what they were made as.
  Result<void> countWrong(StreamHandle stream, unsigned long long* wrong) const;
  /// Self-test: changes a bit of value `at`, or of scale `at`.
  Result<void> flipBit(StreamHandle stream, std::uint64_t at, int bit) const;
  Result<void> flipScaleBit(StreamHandle stream, std::uint64_t at, int bit) const;
  /// Of the places of group `at`, or of the first one after it that names two other places then:
  /// one place named twice is nothing that hardware must bear.
  Result<void> flipPlaceBit(StreamHandle stream, std::uint64_t at, int bit) const;

 private:
  Backend* backend_ = nullptr;
  ScaleRule scaleRule() const { return {rule_, scale_encoding_, backend_->scaleLayout(), n_}; }

  Result<void> fillPlaces(StreamHandle stream);
  std::uint64_t placeWords() const { return values_ / (2 * kGroupsPerWord); }

  DeviceMemory memory_, scales_, places_;
  OperandRule rule_{};
  Encoding encoding_ = Encoding::Float;
  ScaleEncoding scale_encoding_ = ScaleEncoding::E8m0;
  int n_ = 0;
  std::uint64_t values_ = 0;
};

}  // namespace muster::burn::gpu
