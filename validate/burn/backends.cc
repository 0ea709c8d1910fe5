// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/backends.h"

#include "validate/burn/cpu/cpu_device.h"
#include "validate/burn/hip/hip_backend.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <fstream>

namespace muster::burn {
namespace {

constexpr const char* kPciDevices = "/sys/bus/pci/devices";

Result<Devices> openCuda(const std::filesystem::path& folder_of_program) {
  const auto file = folder_of_program / kCudaFile;
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: devices live in it
  if (!library)
    return fail(ErrorCode::NotFound,
                fmt::format("cannot load {}: {}; build with a CUDA toolkit and install cuBLASLt",
                            file.string(), dlerror()));
  const auto open = reinterpret_cast<OpenCuda>(dlsym(library, kCudaEntry));
  if (!open)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is of another version: it has no {}", file.string(), kCudaEntry));
  Devices devices;
  Result<void> opened;
  open(devices, opened);
  TRY_OK(std::move(opened));
  if (devices.empty())
    return fail(ErrorCode::NotFound,
                "CUDA sees no GPU: is the driver loaded, and CUDA_VISIBLE_DEVICES not empty?");
  return devices;
}

std::string word(const std::filesystem::path& file) {
  std::string text;
  std::ifstream(file) >> text;
  return text;
}

}  // namespace

Result<std::string> backendOf(const std::filesystem::path& devices) {
  bool nvidia = false, amd = false;
  std::error_code error;
  for (std::filesystem::directory_iterator each(devices, error), end; !error && each != end;
       each.increment(error)) {
    const auto vendor = word(each->path() / "vendor"), kind = word(each->path() / "class");
    // 3D controllers and processing accelerators; AMD's Instinct are either. Source: PCI code and
    // ID assignment
    const bool computes = kind.starts_with("0x0302") || kind.starts_with("0x0380") ||
                          kind.starts_with("0x1200") || kind.starts_with("0x0300");
    nvidia = nvidia || (computes && vendor == "0x10de");
    amd = amd || (computes && vendor == "0x1002" && !kind.starts_with("0x0300"));
  }
  if (nvidia && amd)
    return fail(ErrorCode::InvalidInput,
                "this host has GPUs of NVIDIA and of AMD: say --backend cuda or --backend hip");
  if (nvidia) return std::string("cuda");
  if (amd) return std::string("hip");
  return fail(ErrorCode::NotFound, "the PCI bus has no GPU of NVIDIA or AMD");
}

Result<Devices> openDevices(const std::string& kind, int threads,
                            const std::filesystem::path& folder_of_program) {
  if (kind == "cpu") {
    Devices devices;
    devices.push_back(makeCpuDevice(threads));
    return devices;
  }
  if (kind == "cuda") return openCuda(folder_of_program);
  if (kind == "hip") return hip::openHip();
  if (kind != "gpu")
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("there is no back end '{}'; there are cpu, cuda, hip and gpu (which of the two "
                    "follows from the GPUs)",
                    kind));
  TRY(found, backendOf(kPciDevices));
  return openDevices(found, threads, folder_of_program);
}

}  // namespace muster::burn
