// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/hip/hipblaslt_product.h"

#include "validate/burn/device.h"

#include <array>
#include <functional>
#include <vector>

namespace muster::burn::hip {
namespace {

constexpr int kAlgorithms = 8;

struct Types {
  DataType a, b, output, scale;
  Compute compute;
};

DataType typeOf(gpu::Encoding encoding) {
  switch (encoding) {
    case gpu::Encoding::Double:
      return DataType::Double;
    case gpu::Encoding::Float:
      return DataType::Float;
    case gpu::Encoding::Brain:
      return DataType::Brain;
    case gpu::Encoding::Half:
      return DataType::Half;
    case gpu::Encoding::E4m3:
      return DataType::E4m3;
    case gpu::Encoding::E5m2:
      return DataType::E5m2;
    case gpu::Encoding::E4m3Fnuz:
      return DataType::E4m3Fnuz;
    case gpu::Encoding::E5m2Fnuz:
      return DataType::E5m2Fnuz;
    case gpu::Encoding::E2m1:  // of no architecture that this back end knows
    case gpu::Encoding::Int8:
      break;
  }
  return DataType::Int8;
}

/// Source: hipBLASLt's table of supported types.
Types typesOf(Dtype dtype, gpu::Float8 float8) {
  const auto a = typeOf(gpu::encodingOf(dtype, true, float8)),
             b = typeOf(gpu::encodingOf(dtype, false, float8));
  switch (gpu::outputOf(dtype)) {
    case gpu::OutputKind::Double:
      return {a, b, DataType::Double, DataType::Double, Compute::Double};
    case gpu::OutputKind::Int32:
      return {a, b, DataType::Int32, DataType::Int32, Compute::Int32};
    case gpu::OutputKind::Half:
      return {a, b, DataType::Half, DataType::Float, Compute::Float};
    case gpu::OutputKind::Float:
      break;
  }
  return {a, b, DataType::Float, DataType::Float,
          dtype == Dtype::Tf32 ? Compute::Tf32 : Compute::Float};
}

/// Handles of the library, ended with the object.
template <class Handle>
using Ended = std::unique_ptr<std::remove_pointer_t<Handle>, std::function<void(Handle)>>;
template <class Handle>
Ended<Handle> ended(Handle handle, BlasStatus (*end)(Handle)) {
  return {handle, [end](Handle each) { (void)end(each); }};
}

class HipBlasLtProduct final : public gpu::Product {
 public:
  HipBlasLtProduct(const HipBlasLtApi& blas, BlasHandle handle, Dtype dtype)
      : blas_(blas), handle_(handle), dtype_(dtype) {}

  Result<void> prepare(gpu::Float8 float8, int n) {
    const auto types = typesOf(dtype_, float8);
    MatmulDesc desc = nullptr;
    TRY_OK(blas_.ok(blas_.matmulDescCreate(&desc, types.compute, types.scale),
                    "hipblasLtMatmulDescCreate"));
    desc_ = ended(desc, blas_.matmulDescDestroy);
    TRY_OK(set(kDescTransposeA, static_cast<std::int32_t>(kTransposed)));
    TRY_OK(set(kDescTransposeB, static_cast<std::int32_t>(kNotTransposed)));
    TRY_OK(lay(a_, types.a, n));
    TRY_OK(lay(b_, types.b, n));
    TRY_OK(lay(output_, types.output, n));
    if (rowOf(dtype_).scale_block) return {};  // what is offered follows from the scales
    return ask();
  }

  int algorithms() const override { return static_cast<int>(offered_.size()); }
  void use(int algorithm) override { algorithm_ = static_cast<std::size_t>(algorithm); }

  Result<void> setScales(const void* a, const void* b) override {
    TRY_OK(set(kDescScaleModeOfA, kScaleOf32));
    TRY_OK(set(kDescScaleModeOfB, kScaleOf32));
    TRY_OK(set(kDescScalesOfA, a));
    TRY_OK(set(kDescScalesOfB, b));
    return ask();
  }

  Result<void> run(const void* a, const void* b, void* c, gpu::StreamHandle stream) override {
    static constexpr float kOne = 1, kZero = 0;
    static constexpr double kOneDouble = 1, kZeroDouble = 0;
    static constexpr std::int32_t kOneWhole = 1, kZeroWhole = 0;
    const void* alpha = dtype_ == Dtype::Fp64   ? static_cast<const void*>(&kOneDouble)
                        : dtype_ == Dtype::Int8 ? static_cast<const void*>(&kOneWhole)
                                                : &kOne;
    const void* beta = dtype_ == Dtype::Fp64   ? static_cast<const void*>(&kZeroDouble)
                       : dtype_ == Dtype::Int8 ? static_cast<const void*>(&kZeroWhole)
                                               : &kZero;
    return blas_.ok(blas_.matmul(handle_, desc_.get(), alpha, a, a_.get(), b, b_.get(), beta, c,
                                 output_.get(), c, output_.get(), &offered_[algorithm_], nullptr, 0,
                                 reinterpret_cast<HipStream>(stream)),
                    "hipblasLtMatmul");
  }

 private:
  template <class T>
  Result<void> set(int which, T value) {
    return blas_.ok(blas_.matmulDescSetAttribute(desc_.get(), which,
                                                 static_cast<const void*>(&value), sizeof value),
                    "hipblasLtMatmulDescSetAttribute");
  }

  Result<void> lay(Ended<MatrixLayout>& to, DataType type, int n) {
    MatrixLayout layout = nullptr;
    const auto edge = static_cast<std::uint64_t>(n);
    TRY_OK(blas_.ok(blas_.matrixLayoutCreate(&layout, type, edge, edge, n),
                    "hipblasLtMatrixLayoutCreate"));
    to = ended(layout, blas_.matrixLayoutDestroy);
    return {};
  }

  /// Without a workspace: what splits the sum over k keeps its parts there.
  Result<void> ask() {
    Preference made = nullptr;
    TRY_OK(blas_.ok(blas_.matmulPreferenceCreate(&made), "hipblasLtMatmulPreferenceCreate"));
    const auto preference = ended(made, blas_.matmulPreferenceDestroy);
    const std::uint64_t none = 0;
    TRY_OK(blas_.ok(
        blas_.matmulPreferenceSetAttribute(made, kPreferenceMaxWorkspaceBytes, &none, sizeof none),
        "hipblasLtMatmulPreferenceSetAttribute"));
    std::array<Heuristic, kAlgorithms> offered{};
    int count = 0;
    TRY_OK(blas_.ok(
        blas_.matmulAlgoGetHeuristic(handle_, desc_.get(), a_.get(), b_.get(), output_.get(),
                                     output_.get(), made, kAlgorithms, offered.data(), &count),
        "hipblasLtMatmulAlgoGetHeuristic"));
    for (int i = 0; i < std::min(count, kAlgorithms); ++i)
      if (const auto& each = offered[static_cast<std::size_t>(i)];
          each.state == 0 && each.workspace_bytes == 0)
        offered_.push_back(each.algorithm);
    return {};
  }

  const HipBlasLtApi blas_;
  const BlasHandle handle_;
  const Dtype dtype_;
  Ended<MatmulDesc> desc_;
  Ended<MatrixLayout> a_, b_, output_;
  std::vector<Algorithm> offered_;
  std::size_t algorithm_ = 0;
};

}  // namespace

Result<std::unique_ptr<gpu::Product>> makeHipBlasLtProduct(const HipBlasLtApi& blas,
                                                           BlasHandle handle, Dtype dtype,
                                                           gpu::Float8 float8, int n) {
  auto product = std::make_unique<HipBlasLtProduct>(blas, handle, dtype);
  TRY_OK(product->prepare(float8, n));
  return product;
}

}  // namespace muster::burn::hip
