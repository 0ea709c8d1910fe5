// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/blas.h"

#include "validate/burn/cpu/kernels.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string_view>

namespace muster::burn::cpu {
namespace {

constexpr int kRowMajor = 101, kNoTrans = 111, kTrans = 112;  // CBLAS's own numbers

template <class F>
F symbol(void* library, const char* name) {
  return reinterpret_cast<F>(dlsym(library, name));
}

}  // namespace

Blas::Blas() {
  const char* chosen = std::getenv("MUSTER_OPENBLAS");
  if (chosen && std::string_view(chosen) == "none") return;
  void* library = dlopen(chosen ? chosen : "libopenblas.so.0",
                         RTLD_NOW | RTLD_LOCAL);  // never closed: it has threads
  if (!library) return;
  const auto threads = symbol<void (*)(int)>(library, "openblas_set_num_threads");
  const auto config = symbol<char* (*)()>(library, "openblas_get_config");
  sgemm_ = symbol<Sgemm>(library, "cblas_sgemm");
  dgemm_ = symbol<Dgemm>(library, "cblas_dgemm");
  if (!threads || !sgemm_ || !dgemm_) {
    sgemm_ = nullptr, dgemm_ = nullptr;
    return;
  }
  threads(1);  // every core has a product of its own, so that a bad core has a number
  name_ = config ? config() : "OpenBLAS";
}

const Blas& Blas::ofThisHost() {
  static const Blas blas;
  return blas;
}

void Blas::multiply(const float* a, const float* b, float* c, int n) const {
  if (sgemm_) return sgemm_(kRowMajor, kNoTrans, kTrans, n, n, n, 1, a, n, b, n, 0, c, n);
  cpu::multiply(a, b, c, n);
}

void Blas::multiply(const double* a, const double* b, double* c, int n) const {
  if (dgemm_) return dgemm_(kRowMajor, kNoTrans, kTrans, n, n, n, 1, a, n, b, n, 0, c, n);
  cpu::multiply(a, b, c, n);
}

}  // namespace muster::burn::cpu
