// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cuda/cublaslt_product.h"

#include "validate/burn/device.h"

#include <array>
#include <vector>

namespace muster::burn::cuda {
namespace {

constexpr std::uint64_t kWorkspaceBytes = 64u << 20;
constexpr int kAlgorithms = 8;

using MatmulDesc =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, Freed<cublasLtMatmulDescDestroy>>;
using MatrixLayout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>,
                                     Freed<cublasLtMatrixLayoutDestroy>>;
using Preference = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                                   Freed<cublasLtMatmulPreferenceDestroy>>;
using Workspace = std::unique_ptr<void, Freed<cudaFree>>;

constexpr auto kFp4 = static_cast<cudaDataType_t>(33);  ///< CUDA_R_4F_E2M1 of CUDA 12.8

/// Source: cuBLASLt's table of supported types for cublasLtMatmul (operands TN, as FP8 and INT8
/// need). FP32 pedantic: by FP32 units, never by tensor cores.
struct TypeRow {
  Dtype dtype;
  cudaDataType_t a, b, output, scale;
  cublasComputeType_t compute;
};
constexpr std::array kTypes{
    TypeRow{Dtype::Fp64, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    TypeRow{Dtype::Fp32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
            CUBLAS_COMPUTE_32F_PEDANTIC},
    TypeRow{Dtype::Tf32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F,
            CUBLAS_COMPUTE_32F_FAST_TF32},
    TypeRow{Dtype::Bf16, CUDA_R_16BF, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Fp16, CUDA_R_16F, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Fp8, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Fp8E5m2, CUDA_R_8F_E5M2, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F,
            CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Mxfp8, CUDA_R_8F_E4M3, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F,
            CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Nvfp4, kFp4, kFp4, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Int8, CUDA_R_8I, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
};

template <class T>
Result<void> set(const MatmulDesc& desc, cublasLtMatmulDescAttributes_t what, T value) {
  return ok(cublasLtMatmulDescSetAttribute(desc.get(), what, static_cast<const void*>(&value),
                                           sizeof value),
            "cublasLtMatmulDescSetAttribute");
}

Result<MatrixLayout> squareLayout(cudaDataType_t type, int n) {
  cublasLtMatrixLayout_t layout = nullptr;
  const auto edge = static_cast<std::uint64_t>(n);
  TRY_OK(
      ok(cublasLtMatrixLayoutCreate(&layout, type, edge, edge, n), "cublasLtMatrixLayoutCreate"));
  return MatrixLayout(layout);
}

Result<Preference> preference() {
  cublasLtMatmulPreference_t made = nullptr;
  TRY_OK(ok(cublasLtMatmulPreferenceCreate(&made), "cublasLtMatmulPreferenceCreate"));
  Preference preference(made);
  const std::uint64_t bytes = kWorkspaceBytes;
  const std::uint32_t no_split = CUBLASLT_REDUCTION_SCHEME_NONE;
  TRY_OK(ok(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                                 &bytes, sizeof bytes),
            "workspace"));
  TRY_OK(ok(cublasLtMatmulPreferenceSetAttribute(made, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                 &no_split, sizeof no_split),
            "reduction scheme"));
  return preference;
}

class CublasLtProduct final : public gpu::Product {
 public:
  CublasLtProduct(cublasLtHandle_t handle, Dtype dtype) : handle_(handle), dtype_(dtype) {}

  Result<void> prepare(int n) {
    const auto& types = kTypes[static_cast<std::size_t>(dtype_)];
    cublasLtMatmulDesc_t desc = nullptr;
    TRY_OK(ok(cublasLtMatmulDescCreate(&desc, types.compute, types.scale),
              "cublasLtMatmulDescCreate"));
    desc_.reset(desc);
    TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(CUBLAS_OP_T)));
    TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<std::int32_t>(CUBLAS_OP_N)));
    if (dtype_ == Dtype::Fp8 || dtype_ == Dtype::Fp8E5m2)
      TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(1)));
    TRY(a, squareLayout(types.a, n));
    TRY(b, squareLayout(types.b, n));
    TRY(output, squareLayout(types.output, n));
    a_ = std::move(a), b_ = std::move(b), output_ = std::move(output);
    void* workspace = nullptr;
    TRY_OK(ok(cudaMalloc(&workspace, kWorkspaceBytes), "cudaMalloc"));
    workspace_.reset(workspace);
    if (rowOf(dtype_).scale_block) return {};  // what is offered follows from the scales
    return ask();
  }

  Result<void> setScales(const void* a, const void* b) override {
#if CUBLAS_VERSION >= 120800
    const auto mode = dtype_ == Dtype::Mxfp8 ? CUBLASLT_MATMUL_MATRIX_SCALE_VEC32_UE8M0
                                             : CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3;
    TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_A_SCALE_MODE, mode));
    TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_B_SCALE_MODE, mode));
    TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, a));
    TRY_OK(set(desc_, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, b));
    return ask();
#else
    (void)a, (void)b;
    return fail(ErrorCode::Internal, "built with a cuBLAS older than 12.8: it has no scales");
#endif
  }

  int algorithms() const override { return static_cast<int>(offered_.size()); }
  void use(int algorithm) override { algorithm_ = static_cast<std::size_t>(algorithm); }

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
    return ok(
        cublasLtMatmul(handle_, desc_.get(), alpha, a, a_.get(), b, b_.get(), beta, c,
                       output_.get(), c, output_.get(), &offered_[algorithm_], workspace_.get(),
                       kWorkspaceBytes, reinterpret_cast<cudaStream_t>(stream)),
        "cublasLtMatmul");
  }

 private:
  Result<void> ask() {
    TRY(prefer, preference());
    std::array<cublasLtMatmulHeuristicResult_t, kAlgorithms> offered{};
    int count = 0;
    TRY_OK(ok(cublasLtMatmulAlgoGetHeuristic(handle_, desc_.get(), a_.get(), b_.get(),
                                             output_.get(), output_.get(), prefer.get(),
                                             kAlgorithms, offered.data(), &count),
              "cublasLtMatmulAlgoGetHeuristic"));
    for (int i = 0; i < count; ++i)
      if (const auto& each = offered[static_cast<std::size_t>(i)];
          each.state == CUBLAS_STATUS_SUCCESS)
        offered_.push_back(each.algo);
    return {};
  }

  const cublasLtHandle_t handle_;
  const Dtype dtype_;
  MatmulDesc desc_;
  MatrixLayout a_, b_, output_;
  Workspace workspace_;
  std::vector<cublasLtMatmulAlgo_t> offered_;
  std::size_t algorithm_ = 0;
};

}  // namespace

Result<std::unique_ptr<gpu::Product>> makeCublasLtProduct(cublasLtHandle_t handle, Dtype dtype,
                                                          int n) {
  auto product = std::make_unique<CublasLtProduct>(handle, dtype);
  TRY_OK(product->prepare(n));
  return product;
}

}  // namespace muster::burn::cuda
