// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cuda/matmul.h"

#include <array>
#include <limits>

namespace muster::burn::cuda {
namespace {

constexpr std::uint64_t kWorkspaceBytes = 64u << 20;
constexpr int kAlgorithms = 8;
constexpr int kTimed = 3;  ///< products an algorithm, after one to warm up

/// Source: cuBLASLt's table of supported types for cublasLtMatmul (operands TN, as FP8 and INT8
/// need).
struct TypeRow {
  Dtype dtype;
  cudaDataType_t operand, output, scale;
  cublasComputeType_t compute;
};
constexpr std::array kTypes{
    TypeRow{Dtype::Fp64, CUDA_R_64F, CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F},
    TypeRow{Dtype::Fp32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Tf32, CUDA_R_32F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32},
    TypeRow{Dtype::Bf16, CUDA_R_16BF, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Fp16, CUDA_R_16F, CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Fp8, CUDA_R_8F_E4M3, CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F},
    TypeRow{Dtype::Int8, CUDA_R_8I, CUDA_R_32I, CUDA_R_32I, CUBLAS_COMPUTE_32I},
};

template <class T>
Result<void> set(const MatmulDesc& desc, cublasLtMatmulDescAttributes_t what, T value) {
  return ok(cublasLtMatmulDescSetAttribute(desc.get(), what, &value, sizeof value),
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

}  // namespace

Result<Matmul> Matmul::make(cublasLtHandle_t handle, Dtype dtype, int n, Choice choice,
                            const void* a, const void* b, void* c, cudaStream_t stream) {
  const auto& types = kTypes[static_cast<std::size_t>(dtype)];
  Matmul matmul;
  matmul.handle_ = handle, matmul.dtype_ = dtype;
  cublasLtMatmulDesc_t desc = nullptr;
  TRY_OK(
      ok(cublasLtMatmulDescCreate(&desc, types.compute, types.scale), "cublasLtMatmulDescCreate"));
  matmul.desc_.reset(desc);
  TRY_OK(set(matmul.desc_, CUBLASLT_MATMUL_DESC_TRANSA, static_cast<std::int32_t>(CUBLAS_OP_T)));
  TRY_OK(set(matmul.desc_, CUBLASLT_MATMUL_DESC_TRANSB, static_cast<std::int32_t>(CUBLAS_OP_N)));
  if (dtype == Dtype::Fp8)
    TRY_OK(set(matmul.desc_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, static_cast<std::int8_t>(1)));
  TRY(operand, squareLayout(types.operand, n));
  TRY(output, squareLayout(types.output, n));
  matmul.operand_ = std::move(operand), matmul.output_ = std::move(output);
  TRY(workspace, allocate(kWorkspaceBytes));
  matmul.workspace_ = std::move(workspace);
  TRY(prefer, preference());
  std::array<cublasLtMatmulHeuristicResult_t, kAlgorithms> offered{};
  int count = 0;
  TRY_OK(ok(cublasLtMatmulAlgoGetHeuristic(
                handle, desc, matmul.operand_.get(), matmul.operand_.get(), matmul.output_.get(),
                matmul.output_.get(), prefer.get(), kAlgorithms, offered.data(), &count),
            "cublasLtMatmulAlgoGetHeuristic"));
  TRY(span, Span::make());
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < count; ++i) {
    if (offered[static_cast<std::size_t>(i)].state != CUBLAS_STATUS_SUCCESS) continue;
    const auto kept = std::exchange(matmul.algorithm_, offered[static_cast<std::size_t>(i)].algo);
    double seconds = std::numeric_limits<double>::infinity();
    if (matmul.run(a, b, c, stream)) {
      if (choice == Choice::SameOnAll) return matmul;
      TRY_OK(span.start(stream));
      for (int turn = 0; turn < kTimed; ++turn) TRY_OK(matmul.run(a, b, c, stream));
      TRY(measured, span.stop(stream));
      seconds = measured;
    }
    if (seconds < best)
      best = seconds;
    else
      matmul.algorithm_ = kept;
  }
  if (best == std::numeric_limits<double>::infinity())
    return fail(ErrorCode::Internal,
                fmt::format("cuBLASLt has no algorithm for {} of {}x{} on this GPU",
                            rowOf(dtype).name, n, n));
  return matmul;
}

Result<void> Matmul::run(const void* a, const void* b, void* c, cudaStream_t stream) const {
  static constexpr float kOne = 1, kZero = 0;
  static constexpr double kOneDouble = 1, kZeroDouble = 0;
  static constexpr std::int32_t kOneWhole = 1, kZeroWhole = 0;
  const void* alpha = dtype_ == Dtype::Fp64   ? static_cast<const void*>(&kOneDouble)
                      : dtype_ == Dtype::Int8 ? static_cast<const void*>(&kOneWhole)
                                              : &kOne;
  const void* beta = dtype_ == Dtype::Fp64   ? static_cast<const void*>(&kZeroDouble)
                     : dtype_ == Dtype::Int8 ? static_cast<const void*>(&kZeroWhole)
                                             : &kZero;
  return ok(cublasLtMatmul(handle_, desc_.get(), alpha, a, operand_.get(), b, operand_.get(), beta,
                           c, output_.get(), c, output_.get(), &algorithm_, workspace_.get(),
                           kWorkspaceBytes, stream),
            "cublasLtMatmul");
}

}  // namespace muster::burn::cuda
