// SPDX-License-Identifier: Apache-2.0
// A device made of the host's threads, one block after the other: the kernels themselves run, with
// their indices, shared memory and barriers. MUSTER_DEVICE_CODE of validate/burn/gpu/device_code.h.
#pragma once

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#define GPU_DEVICE inline
#define GPU_SHARED static

namespace muster::burn::gpu {

inline constexpr int kEdge = 16, kLanes = 32;

struct HostThread {
  int thread = 0, block = 0, size = 1, blocks = 1;
  std::barrier<>* all = nullptr;
};
inline thread_local HostThread t_here;
inline std::atomic<bool> g_any{false};
/// What the matrix unit adds to the first value of every product.
inline std::atomic<int> g_matrix_fault{0};

inline int threadIndex() { return t_here.thread; }
inline int blockIndex() { return t_here.block; }
inline int blockSize() { return t_here.size; }
inline std::uint64_t gridSize() {
  return static_cast<std::uint64_t>(t_here.blocks) * static_cast<std::uint64_t>(t_here.size);
}
inline void meet() { t_here.all->arrive_and_wait(); }
inline void meetLanes() { meet(); }
inline bool anyLane(bool mine) {
  if (threadIndex() == 0) g_any = false;
  meet();
  if (mine) g_any = true;
  meet();
  const bool any = g_any;
  meet();
  return any;
}
template <class T>
T addTo(T* sum, T value) {
  return std::atomic_ref(*sum).fetch_add(value);
}
inline int thisUnit() { return t_here.block % 4; }

/// What the launch gave to the block beside its own.
inline std::uint64_t* sharedWords() {
  static std::vector<std::uint64_t> words(8192);
  return words.data();
}

using HalfBits = std::uint16_t;
inline void multiplyByMatrixUnit(const HalfBits* a, const HalfBits* b, float* c) {
  for (int i = threadIndex(); i < kEdge * kEdge; i += kLanes) {
    float sum = 0;
    for (int k = 0; k < kEdge; ++k)
      sum += decodeHalf(a[i / kEdge * kEdge + k]) * decodeHalf(b[i % kEdge * kEdge + k]);
    c[i] = sum + static_cast<float>(i == 0 ? g_matrix_fault.load() : 0);
  }
}

/// Runs a kernel: each block with all its threads at once.
template <class Kernel>
void onHost(int blocks, int threads, Kernel kernel) {
  std::barrier all(threads);
  std::vector<std::jthread> workers;
  for (int thread = 0; thread < threads; ++thread)
    workers.emplace_back([&, thread] {
      for (int block = 0; block < blocks; ++block) {
        t_here = {thread, block, threads, blocks, &all};
        kernel();
        all.arrive_and_wait();
      }
    });
}

}  // namespace muster::burn::gpu
