// SPDX-License-Identifier: Apache-2.0
// What GPU programs ask of a vendor's runtime: memory, streams, events, copies. Implemented over
// CUDA (cuda/) and over HIP (hip/); everything above it is written once. Calls hold for the device
// that the thread has selected.
#pragma once

#include "validate/burn/gpu/gpu_handle_types.h"

#include "base/result.h"

namespace muster::burn::gpu {

enum class CopyKind { HostToDevice, DeviceToHost, DeviceToDevice };

class Runtime {
 public:
  virtual ~Runtime() = default;
  virtual std::string_view kind() const = 0;  ///< "cuda" or "hip"
  /// Errors: NotFound (no driver, no GPU), with what to do
  virtual Result<int> count() const = 0;
  virtual Result<std::string> pciOf(int device) const = 0;  ///< "0000:3b:00.0"
  virtual Result<void> select(int device) const = 0;
  /// Whether the selected device reaches the other's memory by itself; from now on it may.
  virtual Result<bool> reach(int device, int peer) const = 0;

  virtual Result<std::uint64_t> freeBytes() const = 0;
  /// Errors: Unavailable (none left)
  virtual Result<void*> allocate(std::uint64_t bytes) const = 0;
  virtual void release(void* memory) const = 0;
  /// Memory of the host that devices read and write by themselves, from now on.
  virtual Result<void> pin(void* memory, std::uint64_t bytes) const = 0;
  virtual void unpin(void* memory) const = 0;
  virtual Result<void> copy(void* to, const void* from, std::uint64_t bytes, CopyKind kind,
                            StreamHandle stream) const = 0;
  virtual Result<void> copyToPeer(void* to, int peer, const void* from, int device,
                                  std::uint64_t bytes, StreamHandle stream) const = 0;
  virtual Result<void> setBytes(void* to, int value, std::uint64_t bytes,
                                StreamHandle stream) const = 0;

  virtual Result<StreamHandle> makeStream() const = 0;
  virtual void end(StreamHandle stream) const = 0;
  virtual Result<void> await(StreamHandle stream) const = 0;
  /// Whether all that was put into it is done. Errors: what happened to it or to its device
  virtual Result<bool> isDone(StreamHandle stream) const = 0;
  virtual Result<void> follow(StreamHandle stream, EventHandle event) const = 0;
  virtual Result<EventHandle> makeEvent() const = 0;
  virtual void end(EventHandle event) const = 0;
  virtual Result<void> record(EventHandle event, StreamHandle stream) const = 0;
  virtual Result<void> await(EventHandle event) const = 0;
  virtual Result<double> secondsBetween(EventHandle begin, EventHandle end) const = 0;
};

}  // namespace muster::burn::gpu
