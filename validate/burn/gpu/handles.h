// SPDX-License-Identifier: Apache-2.0
// A runtime's handles with owners. The runtime outlives them.
#pragma once

#include "validate/burn/gpu/runtime.h"

#include <fmt/format.h>

#include <memory>

namespace muster::burn::gpu {

struct FreeMemory {
  const Runtime* runtime = nullptr;
  void operator()(void* memory) const { runtime->release(memory); }
};
struct EndHandle {
  const Runtime* runtime = nullptr;
  template <class Handle>
  void operator()(Handle* handle) const {
    runtime->end(handle);
  }
};
using DeviceMemory = std::unique_ptr<void, FreeMemory>;
using Stream = std::unique_ptr<GpuStream, EndHandle>;
using Event = std::unique_ptr<GpuEvent, EndHandle>;

template <class T>
T* as(const DeviceMemory& memory) {
  return static_cast<T*>(memory.get());
}

inline Result<Stream> makeStream(const Runtime& runtime) {
  TRY(stream, runtime.makeStream());
  return Stream(stream, {&runtime});
}
inline Result<Event> makeEvent(const Runtime& runtime) {
  TRY(event, runtime.makeEvent());
  return Event(event, {&runtime});
}
inline Result<DeviceMemory> allocate(const Runtime& runtime, std::uint64_t bytes) {
  auto memory = runtime.allocate(bytes);
  if (!memory)
    return fail(
        std::move(memory.error()).within(fmt::format("{} MiB of device memory", bytes >> 20)));
  return DeviceMemory(*memory, {&runtime});
}
/// Seconds that the stream took between two points.
struct Span {
  const Runtime* runtime;
  Event begin, end;
  static Result<Span> make(const Runtime& runtime) {
    TRY(begin, makeEvent(runtime));
    TRY(end, makeEvent(runtime));
    return Span{&runtime, std::move(begin), std::move(end)};
  }
  Result<void> start(StreamHandle stream) const { return runtime->record(begin.get(), stream); }
  Result<double> stop(StreamHandle stream) const {
    TRY_OK(record(stream));
    TRY_OK(runtime->await(end.get()));
    return seconds();
  }
  /// The second point, without waiting for it.
  Result<void> record(StreamHandle stream) const { return runtime->record(end.get(), stream); }
  /// When the stream has passed both.
  Result<double> seconds() const { return runtime->secondsBetween(begin.get(), end.get()); }
};

}  // namespace muster::burn::gpu
