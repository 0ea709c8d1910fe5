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

/// c += a·b for 16 × 32 · 32 × 8 by 32 lanes, as the PTX ISA describes mma.sp.m16n8k32 with .bf16:
/// each lane gives its registers, then works out its own four sums from where the description puts
/// rows, columns and metadata. What is in the third and fourth lane's metadata does not count.
struct SparseRegisters {
  std::uint32_t a[4], b[4], metadata;
};
inline SparseRegisters g_registers[8][32];
inline float brainAt(std::uint32_t word, int half) {
  return __builtin_bit_cast(float, (half ? word >> 16 : word & 0xffff) << 16);
}
inline void multiplySparseFragment(float (&c)[4], const std::uint32_t (&a)[4],
                                   const std::uint32_t (&b)[4], std::uint32_t places) {
  const int warp = threadIndex() / 32, lane = threadIndex() % 32;
  auto& mine = g_registers[warp][lane];
  for (int i = 0; i < 4; ++i) mine.a[i] = a[i], mine.b[i] = b[i];
  mine.metadata = places;
  meet();
  for (int i = 0; i < 4; ++i) {
    const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
    for (int kept = 0; kept < 16; ++kept) {
      // Chunk [row][0..15] is in bits 0 to 15 of lane 4·row, [row + 8][0..15] in its bits 16 to 31;
      // [row][16..31] of the lane after it. Two bits an index, the lower index first.
      const auto bits = g_registers[warp][row % 8 * 4 + kept / 8].metadata;
      const int place = static_cast<int>(bits >> (row / 8 * 16 + kept % 8 * 2) & 3);
      const int k = kept / 2 * 4 + place;
      const float left = brainAt(
          g_registers[warp][row % 8 * 4 + kept % 8 / 2].a[row / 8 + kept / 8 * 2], kept % 2);
      const float right = brainAt(g_registers[warp][column * 4 + k % 8 / 2].b[k / 8], k % 2);
      c[i] += left * right;
    }
  }
  meet();
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
