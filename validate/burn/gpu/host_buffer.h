// SPDX-License-Identifier: Apache-2.0
// Pinned memory of the host on the memory node that is near a GPU: a copy from the other socket
// measures the link between sockets.
#pragma once

#include "validate/burn/gpu/runtime.h"

#include <filesystem>
#include <memory>
#include <optional>

namespace muster::burn::gpu {

/// /sys/bus/pci/devices, or what MUSTER_PCI_DEVICES names (tests).
std::filesystem::path pciDevices();
/// The memory node that the kernel says is near a PCI device; nullopt: it names none. `devices`:
/// /sys/bus/pci/devices
std::optional<int> memoryNodeOf(const std::filesystem::path& devices, std::string pci);

class HostBuffer {
 public:
  /// On `node` where that is given and has memory left, else anywhere. Errors: Unavailable
  static Result<HostBuffer> make(const Runtime& runtime, std::uint64_t bytes,
                                 std::optional<int> node);

  void* data() const { return memory_.get(); }
  /// On which its first page lies; nullopt: the kernel does not say.
  std::optional<int> node() const;

 private:
  struct Unmap {
    const Runtime* runtime;  ///< null: not pinned
    std::uint64_t bytes;
    void operator()(void* memory) const;
  };
  HostBuffer(void* memory, std::uint64_t bytes) : memory_(memory, Unmap{nullptr, bytes}) {}

  std::unique_ptr<void, Unmap> memory_;
};

}  // namespace muster::burn::gpu
