// SPDX-License-Identifier: Apache-2.0
// CUDA's runtime behind the seam of gpu/. `Base`: gpu::Runtime, or gpu::Backend, which burning
// completes.
#pragma once

#include "validate/burn/cuda/cuda_codes.h"
#include "validate/burn/gpu/runtime.h"

namespace muster::burn::cuda {

inline cudaStream_t own(gpu::StreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }
inline cudaEvent_t own(gpu::EventHandle event) { return reinterpret_cast<cudaEvent_t>(event); }

template <class Base>
class CudaCalls : public Base {
 public:
  using CopyKind = gpu::CopyKind;
  using EventHandle = gpu::EventHandle;
  using StreamHandle = gpu::StreamHandle;

  std::string_view kind() const override { return "cuda"; }

  Result<int> count() const override {
    int count = 0;
    if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess)
      return fail(
          ErrorCode::NotFound,
          fmt::format(
              "CUDA sees no GPU: {}; is the NVIDIA driver loaded, and not older than this toolkit?",
              cudaGetErrorString(code)));
    if (count < 1)
      return fail(ErrorCode::NotFound, "CUDA sees no GPU: is CUDA_VISIBLE_DEVICES empty?");
    return count;
  }

  Result<std::string> pciOf(int device) const override {
    char text[32] = {};
    TRY_OK(ok(cudaDeviceGetPCIBusId(text, sizeof text, device), "cudaDeviceGetPCIBusId"));
    return std::string(text);
  }
  Result<void> select(int device) const override {
    return ok(cudaSetDevice(device), "cudaSetDevice");
  }

  Result<bool> reach(int device, int peer) const override {
    int can = 0;
    TRY_OK(ok(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer"));
    if (!can) return false;
    const auto enabled = cudaDeviceEnablePeerAccess(peer, 0);
    if (enabled != cudaErrorPeerAccessAlreadyEnabled)
      TRY_OK(ok(enabled, "cudaDeviceEnablePeerAccess"));
    cudaGetLastError();  // where it would stay as an error
    return true;
  }

  Result<std::uint64_t> freeBytes() const override {
    std::size_t free = 0, total = 0;
    TRY_OK(ok(cudaMemGetInfo(&free, &total), "cudaMemGetInfo"));
    return free;
  }
  Result<void*> allocate(std::uint64_t bytes) const override {
    void* memory = nullptr;
    auto made = ok(cudaMalloc(&memory, bytes), "cudaMalloc");
    if (made) return memory;
    cudaGetLastError();  // it is told here; the next call begins clean
    return fail(std::move(made.error()));
  }
  void release(void* memory) const override { cudaFree(memory); }
  Result<void> pin(void* memory, std::uint64_t bytes) const override {
    return ok(cudaHostRegister(memory, bytes, cudaHostRegisterPortable), "cudaHostRegister");
  }
  void unpin(void* memory) const override { cudaHostUnregister(memory); }
  Result<void> copy(void* to, const void* from, std::uint64_t bytes, CopyKind kind,
                    StreamHandle stream) const override {
    const auto direction = kind == CopyKind::HostToDevice   ? cudaMemcpyHostToDevice
                           : kind == CopyKind::DeviceToHost ? cudaMemcpyDeviceToHost
                                                            : cudaMemcpyDeviceToDevice;
    return ok(cudaMemcpyAsync(to, from, bytes, direction, own(stream)), "cudaMemcpyAsync");
  }
  Result<void> copyToPeer(void* to, int peer, const void* from, int device, std::uint64_t bytes,
                          StreamHandle stream) const override {
    return ok(cudaMemcpyPeerAsync(to, peer, from, device, bytes, own(stream)),
              "cudaMemcpyPeerAsync");
  }
  Result<void> setBytes(void* to, int value, std::uint64_t bytes,
                        StreamHandle stream) const override {
    return ok(cudaMemsetAsync(to, value, bytes, own(stream)), "cudaMemsetAsync");
  }

  Result<StreamHandle> makeStream() const override {
    cudaStream_t stream = nullptr;
    TRY_OK(
        ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"));
    return reinterpret_cast<StreamHandle>(stream);
  }
  void end(StreamHandle stream) const override { cudaStreamDestroy(own(stream)); }
  Result<void> await(StreamHandle stream) const override {
    return ok(cudaStreamSynchronize(own(stream)), "cudaStreamSynchronize");
  }
  Result<bool> isDone(StreamHandle stream) const override {
    const auto state = cudaStreamQuery(own(stream));
    if (state == cudaErrorNotReady) (void)cudaGetLastError();  // where it would stay as an error
    if (state == cudaErrorNotReady) return false;
    TRY_OK(ok(state, "cudaStreamQuery"));
    return true;
  }
  Result<void> follow(StreamHandle stream, EventHandle event) const override {
    return ok(cudaStreamWaitEvent(own(stream), own(event), 0), "cudaStreamWaitEvent");
  }
  Result<EventHandle> makeEvent() const override {
    cudaEvent_t event = nullptr;
    TRY_OK(ok(cudaEventCreate(&event), "cudaEventCreate"));
    return reinterpret_cast<EventHandle>(event);
  }
  void end(EventHandle event) const override { cudaEventDestroy(own(event)); }
  Result<void> record(EventHandle event, StreamHandle stream) const override {
    return ok(cudaEventRecord(own(event), own(stream)), "cudaEventRecord");
  }
  Result<void> await(EventHandle event) const override {
    return ok(cudaEventSynchronize(own(event)), "cudaEventSynchronize");
  }
  Result<double> secondsBetween(EventHandle begin, EventHandle end) const override {
    float milliseconds = 0;
    TRY_OK(ok(cudaEventElapsedTime(&milliseconds, own(begin), own(end)), "cudaEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e-3;
  }
};

}  // namespace muster::burn::cuda
