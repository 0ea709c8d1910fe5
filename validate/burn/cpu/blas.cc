// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/cpu/blas.h"

#include "validate/burn/cpu/kernels.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace muster::burn::cpu {
namespace {

/// Of one thread that multiplies. Source: OpenBLAS 0.3, BUFFER_SIZE of common_x86_64.h and
/// common_arm64.h (32 << 22), and what it asks for in addition, seen by strace of 0.3.21.
constexpr std::size_t kWorkBytes = (32u << 22) + (64u << 10);

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

Result<void> Blas::reserve(std::size_t threads) const {
  std::lock_guard lock(mutex_);
  if (!sgemm_ || threads <= reserved_) return {};
  std::vector<void*> held;  // one by one, as it asks itself; nothing is written into them
  while (held.size() < threads - reserved_) {
    void* memory =
        mmap(nullptr, kWorkBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) break;
    held.push_back(memory);
  }
  for (void* memory : held) munmap(memory, kWorkBytes);
  if (held.size() < threads - reserved_)
    return fail(ErrorCode::Unavailable,
                fmt::format("not enough memory: OpenBLAS needs {} MiB for each of {} cores; give "
                            "this process more, or name fewer cores with --threads",
                            kWorkBytes >> 20, threads));
  reserved_ = threads;
  return {};
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
