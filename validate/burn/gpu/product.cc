// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/product.h"

#include "validate/burn/gpu/handles.h"

#include <limits>

namespace muster::burn::gpu {
namespace {

constexpr int kTimed = 3;  ///< products an algorithm, after one to warm up
constexpr double kNever = std::numeric_limits<double>::infinity();

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

}  // namespace muster::burn::gpu
