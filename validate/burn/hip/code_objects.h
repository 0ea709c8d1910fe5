// SPDX-License-Identifier: Apache-2.0
// Kernels of embedded code objects, one an architecture, loaded on each device when they are first
// asked for.
#pragma once

#include "base/embedded.h"
#include "validate/burn/hip/hip_api.h"

#include <array>
#include <map>
#include <mutex>
#include <span>

namespace muster::burn::hip {

struct Shape {
  unsigned blocks = 1, threads = 1, shared_bytes = 0;
};

class CodeObjects {
 public:
  /// `files`: by name of the architecture ("gfx942"), borrowed for ever.
  CodeObjects(const HipApi& hip, std::span<const EmbeddedFile> files);
  ~CodeObjects();
  CodeObjects(const CodeObjects&) = delete;
  CodeObjects& operator=(const CodeObjects&) = delete;

  /// Launches the kernel of this name on the thread's device. The arguments' types are the kernel's
  /// own. Errors: NotFound (no code for this GPU), Internal
  template <class... Arguments>
  Result<void> launch(const char* name, const Shape& shape, HipStream stream,
                      Arguments... arguments) {
    std::array<void*, sizeof...(Arguments)> pointers{static_cast<void*>(&arguments)...};
    return launchWith(name, shape, stream, pointers.data());
  }

 private:
  struct Loaded {
    HipModule module = nullptr;
    std::map<std::string, HipFunction> functions;
  };
  Result<HipModule> load(int device) const;
  Result<void> launchWith(const char* name, const Shape& shape, HipStream stream, void** arguments);
  Result<HipFunction> find(const char* name);

  const HipApi hip_;
  const std::span<const EmbeddedFile> files_;
  std::mutex mutex_;
  std::map<int, Loaded> devices_;
};

}  // namespace muster::burn::hip
