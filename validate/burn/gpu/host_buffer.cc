// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/gpu/host_buffer.h"

#include <fmt/format.h>

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace muster::burn::gpu {
namespace {

constexpr int kMostNodes = 1024;  ///< the kernel's own limit (CONFIG_NODES_SHIFT)
constexpr int kWordBits = 64;

/// Where its pages come from when they are touched. Not strict: memory elsewhere is slower, and
/// none would be no measurement at all. What became of it `node` tells.
void prefer(void* memory, std::uint64_t bytes, int node) {
  if (node < 0 || node >= kMostNodes) return;
  std::array<unsigned long, kMostNodes / kWordBits> nodes{};
  nodes[static_cast<std::size_t>(node / kWordBits)] = 1UL << (node % kWordBits);
  (void)::syscall(SYS_mbind, memory, bytes, MPOL_PREFERRED, nodes.data(), kMostNodes + 1, 0);
}

}  // namespace

std::filesystem::path pciDevices() {
  const char* chosen = std::getenv("MUSTER_PCI_DEVICES");
  return chosen ? chosen : "/sys/bus/pci/devices";
}

std::optional<int> memoryNodeOf(const std::filesystem::path& devices, std::string pci) {
  std::transform(pci.begin(), pci.end(), pci.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  int node = -1;
  std::ifstream in(devices / pci / "numa_node");
  return in >> node && node >= 0 ? std::optional(node) : std::nullopt;
}

void HostBuffer::Unmap::operator()(void* memory) const {
  if (runtime) runtime->unpin(memory);
  ::munmap(memory, bytes);
}

Result<HostBuffer> HostBuffer::make(const Runtime& runtime, std::uint64_t bytes,
                                    std::optional<int> node) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return fail(ErrorCode::Unavailable,
                fmt::format("{} MiB of the host's memory: {}", bytes >> 20, std::strerror(errno)));
  HostBuffer buffer(memory, bytes);
  if (node) prefer(memory, bytes, *node);
  std::memset(memory, 0, bytes);
  TRY_OK(runtime.pin(memory, bytes));
  buffer.memory_.get_deleter().runtime = &runtime;
  return buffer;
}

std::optional<int> HostBuffer::node() const {
  void* page = memory_.get();
  int status = -1;
  if (::syscall(SYS_move_pages, 0, 1, &page, nullptr, &status, 0) != 0 || status < 0)
    return std::nullopt;
  return status;
}

}  // namespace muster::burn::gpu
