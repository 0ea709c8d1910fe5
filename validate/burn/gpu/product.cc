// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/product.h"

#include "validate/burn/gpu/handles.h"

#include <limits>

namespace muster::burn::gpu {
namespace {

constexpr int kTimed = 3;  ///< products an algorithm, after one to warm up
constexpr double kNever = std::numeric_limits<double>::infinity();

class SparseProduct final : public Product {
 public:
  SparseProduct(Kernels& kernels, const std::uint32_t* places, int n)
      : kernels_(kernels), places_(places), n_(n) {}

  int algorithms() const override { return 1; }
  void use(int) override {}
  Result<void> setScales(const void*, const void*) override {
    return fail(ErrorCode::Internal, "sparse products have no scales");
  }
  Result<void> run(const void* a, const void* b, void* c, StreamHandle stream) override {
    return kernels_.multiplySparse(stream, {a, places_, b, static_cast<float*>(c), n_});
  }

 private:
  Kernels& kernels_;
  const std::uint32_t* const places_;
  const int n_;
};

}  // namespace

Result<void> chooseAlgorithm(const Runtime& runtime, Product& product, Choice choice, const void* a,
                             const void* b, void* c, StreamHandle stream) {
  TRY(span, Span::make(runtime));
  double best = kNever;
  int chosen = 0;
  for (int algorithm = 0; algorithm < product.algorithms(); ++algorithm) {
    product.use(algorithm);
    if (!product.run(a, b, c, stream)) continue;  // offered, and refused when asked for
    if (choice == Choice::SameOnAll) return {};
    TRY_OK(span.start(stream));
    for (int turn = 0; turn < kTimed; ++turn) TRY_OK(product.run(a, b, c, stream));
    TRY(seconds, span.stop(stream));
    if (seconds < best) best = seconds, chosen = algorithm;
  }
  if (best == kNever) return fail(ErrorCode::Internal, "no algorithm");
  product.use(chosen);
  return {};
}

std::unique_ptr<Product> makeSparseProduct(Kernels& kernels, const std::uint32_t* places, int n) {
  return std::make_unique<SparseProduct>(kernels, places, n);
}

}  // namespace muster::burn::gpu
