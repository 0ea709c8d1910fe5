// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/backends.h"

#include "validate/burn/cpu/cpu_device.h"

#include <dlfcn.h>

namespace muster::burn {

Result<Devices> openDevices(const std::string& kind, int threads,
                            const std::filesystem::path& folder_of_program) {
  Devices devices;
  if (kind == "cpu") {
    devices.push_back(makeCpuDevice(threads));
    return devices;
  }
  if (kind != "cuda")
    return fail(ErrorCode::InvalidInput,
                fmt::format("there is no back end '{}'; there are cpu and cuda", kind));
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
  Result<void> opened;
  open(devices, opened);
  TRY_OK(std::move(opened));
  if (devices.empty())
    return fail(ErrorCode::NotFound,
                "CUDA sees no GPU: is the driver loaded, and CUDA_VISIBLE_DEVICES not empty?");
  return devices;
}

}  // namespace muster::burn
