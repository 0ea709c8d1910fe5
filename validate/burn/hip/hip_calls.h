// SPDX-License-Identifier: Apache-2.0
// HIP's runtime behind the seam of gpu/. `Base`: gpu::Runtime, or gpu::Backend, which burning
// completes.
#pragma once

#include "validate/burn/gpu/runtime.h"
#include "validate/burn/hip/hip_api.h"

#include <algorithm>
#include <cctype>

namespace muster::burn::hip {

inline HipStream own(gpu::StreamHandle stream) { return reinterpret_cast<HipStream>(stream); }
inline HipEvent own(gpu::EventHandle event) { return reinterpret_cast<HipEvent>(event); }

template <class Base>
class HipCalls : public Base {
 public:
  using CopyKind = gpu::CopyKind;
  using EventHandle = gpu::EventHandle;
  using StreamHandle = gpu::StreamHandle;

  explicit HipCalls(const HipApi& hip) : hip_(hip) {}

  std::string_view kind() const override { return "hip"; }

  Result<int> count() const override {
    int count = 0;
    const auto code = hip_.getDeviceCount(&count);
    if (code == kSuccess && count > 0) return count;
    return fail(ErrorCode::NotFound,
                fmt::format("HIP sees no GPU{}{}; is amdgpu loaded, may this user open /dev/kfd, "
                            "and is HIP_VISIBLE_DEVICES not empty?",
                            code == kSuccess ? "" : ": ",
                            code == kSuccess ? "" : hip_.getErrorString(code)));
  }

  Result<std::string> pciOf(int device) const override {
    char text[32] = {};
    TRY_OK(ok(hip_.deviceGetPciBusId(text, sizeof text, device), "hipDeviceGetPCIBusId"));
    std::string pci = text;  // in lower case, as the kernel's folders are
    std::transform(pci.begin(), pci.end(), pci.begin(),
                   [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    return pci;
  }

  Result<void> select(int device) const override {
    return ok(hip_.setDevice(device), "hipSetDevice");
  }

  Result<bool> reach(int device, int peer) const override {
    int can = 0;
    TRY_OK(ok(hip_.deviceCanAccessPeer(&can, device, peer), "hipDeviceCanAccessPeer"));
    if (!can) return false;
    const auto enabled = hip_.deviceEnablePeerAccess(peer, 0);
    if (enabled != kPeerAlreadyEnabled) TRY_OK(ok(enabled, "hipDeviceEnablePeerAccess"));
    (void)hip_.getLastError();  // where it would stay as an error
    return true;
  }

  Result<std::uint64_t> freeBytes() const override {
    std::size_t free = 0, total = 0;
    TRY_OK(ok(hip_.memGetInfo(&free, &total), "hipMemGetInfo"));
    return free;
  }
  Result<void*> allocate(std::uint64_t bytes) const override {
    void* memory = nullptr;
    auto made = ok(hip_.malloc(&memory, bytes), "hipMalloc");
    if (made) return memory;
    (void)hip_.getLastError();  // it is told here; the next call begins clean
    return fail(std::move(made.error()));
  }
  void release(void* memory) const override { (void)hip_.free(memory); }
  Result<void> pin(void* memory, std::uint64_t bytes) const override {
    return ok(hip_.hostRegister(memory, bytes, kRegisterPortable), "hipHostRegister");
  }
  void unpin(void* memory) const override { (void)hip_.hostUnregister(memory); }
  Result<void> copy(void* to, const void* from, std::uint64_t bytes, CopyKind kind,
                    StreamHandle stream) const override {
    const auto direction = kind == CopyKind::HostToDevice   ? kCopyHostToDevice
                           : kind == CopyKind::DeviceToHost ? kCopyDeviceToHost
                                                            : kCopyDeviceToDevice;
    return ok(hip_.memcpyAsync(to, from, bytes, direction, own(stream)), "hipMemcpyAsync");
  }
  Result<void> copyToPeer(void* to, int peer, const void* from, int device, std::uint64_t bytes,
                          StreamHandle stream) const override {
    return ok(hip_.memcpyPeerAsync(to, peer, from, device, bytes, own(stream)),
              "hipMemcpyPeerAsync");
  }
  Result<void> setBytes(void* to, int value, std::uint64_t bytes,
                        StreamHandle stream) const override {
    return ok(hip_.memsetAsync(to, value, bytes, own(stream)), "hipMemsetAsync");
  }

  Result<StreamHandle> makeStream() const override {
    HipStream stream = nullptr;
    TRY_OK(ok(hip_.streamCreateWithFlags(&stream, kStreamNonBlocking), "hipStreamCreateWithFlags"));
    return reinterpret_cast<StreamHandle>(stream);
  }
  void end(StreamHandle stream) const override { (void)hip_.streamDestroy(own(stream)); }
  Result<void> await(StreamHandle stream) const override {
    return ok(hip_.streamSynchronize(own(stream)), "hipStreamSynchronize");
  }
  Result<bool> isDone(StreamHandle stream) const override {
    const auto state = hip_.streamQuery(own(stream));
    if (state == kNotReady) {
      (void)hip_.getLastError();  // where it would stay as an error
      return false;
    }
    TRY_OK(ok(state, "hipStreamQuery"));
    return true;
  }
  Result<void> follow(StreamHandle stream, EventHandle event) const override {
    return ok(hip_.streamWaitEvent(own(stream), own(event), 0), "hipStreamWaitEvent");
  }
  Result<EventHandle> makeEvent() const override {
    HipEvent event = nullptr;
    TRY_OK(ok(hip_.eventCreate(&event), "hipEventCreate"));
    return reinterpret_cast<EventHandle>(event);
  }
  void end(EventHandle event) const override { (void)hip_.eventDestroy(own(event)); }
  Result<void> record(EventHandle event, StreamHandle stream) const override {
    return ok(hip_.eventRecord(own(event), own(stream)), "hipEventRecord");
  }
  Result<void> await(EventHandle event) const override {
    return ok(hip_.eventSynchronize(own(event)), "hipEventSynchronize");
  }
  Result<double> secondsBetween(EventHandle begin, EventHandle end) const override {
    float milliseconds = 0;
    TRY_OK(ok(hip_.eventElapsedTime(&milliseconds, own(begin), own(end)), "hipEventElapsedTime"));
    return static_cast<double>(milliseconds) * 1e-3;
  }

 protected:
  Result<void> ok(Code code, const char* call) const { return hip_.ok(code, call); }
  const HipApi hip_;
};

}  // namespace muster::burn::hip
