// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/hip/code_objects.h"

#include <cstring>
#include <vector>

namespace muster::burn::hip {
namespace {

struct alignas(4096) Page {
  char bytes[4096];
};

}  // namespace

CodeObjects::CodeObjects(const HipApi& hip, std::span<const EmbeddedFile> files)
    : hip_(hip), files_(files) {}

CodeObjects::~CodeObjects() {
  for (const auto& [device, loaded] : devices_) {
    (void)hip_.setDevice(device);
    (void)hip_.moduleUnload(loaded.module);
  }
}

Result<HipModule> CodeObjects::load(int device) const {
  DeviceProperties properties{};
  TRY_OK(hip_.ok(hip_.getDeviceProperties(&properties, device), "hipGetDeviceProperties"));
  const auto name = architectureOf(properties);
  std::string carried;
  for (const auto& file : files_) {
    carried += (carried.empty() ? "" : ", ") + std::string(file.name);
    if (file.name != name) continue;
    HipModule module = nullptr;
    // Aligned as a file is that the loader maps: it reads the ELF in place.
    std::vector<Page> pages(file.content.size() / sizeof(Page) + 1);
    std::memcpy(pages.data(), file.content.data(), file.content.size());
    TRY_OK(hip_.ok(hip_.moduleLoadData(&module, pages.data()), "hipModuleLoadData"));
    return module;
  }
  return fail(
      ErrorCode::NotFound,
      fmt::format("this muster carries no kernels for {}, only for {}: build it with a clang "
                  "that knows {}",
                  name, carried, name));
}

Result<HipFunction> CodeObjects::find(const char* name) {
  int device = 0;
  TRY_OK(hip_.ok(hip_.getDevice(&device), "hipGetDevice"));
  const std::scoped_lock lock(mutex_);
  auto at = devices_.find(device);
  if (at == devices_.end()) {
    TRY(module, load(device));
    at = devices_.emplace(device, Loaded{module, {}}).first;
  }
  auto& function = at->second.functions[name];
  if (!function) TRY_OK(hip_.ok(hip_.moduleGetFunction(&function, at->second.module, name), name));
  return function;
}

Result<void> CodeObjects::launchWith(const char* name, const Shape& shape, HipStream stream,
                                     void** arguments) {
  TRY(function, find(name));
  return hip_.ok(hip_.moduleLaunchKernel(function, shape.blocks, 1, 1, shape.threads, 1, 1,
                                         shape.shared_bytes, stream, arguments, nullptr),
                 name);
}

}  // namespace muster::burn::hip
