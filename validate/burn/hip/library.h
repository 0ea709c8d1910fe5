// SPDX-License-Identifier: Apache-2.0
// A shared library of ROCm, found at run time. It is never closed: devices live in it.
#pragma once

#include "base/result.h"

#include <initializer_list>
#include <string>

namespace muster::burn::hip {

class Library {
 public:
  /// The first of `names` that there is, as the loader finds it or in /opt/rocm/lib; `variable` of
  /// the environment names another file. Errors: NotFound, with `advice`
  static Result<Library> open(const char* variable, std::initializer_list<const char*> names,
                              const char* advice);

  template <class Function>
  void load(Function*& function, const char* name) {
    function = reinterpret_cast<Function*>(symbol(name));
  }
  /// Errors: Corrupt, with the first function that was not there
  Result<void> complete() const;

 private:
  void* symbol(const char* name);

  void* handle_ = nullptr;
  std::string file_, missing_, advice_;
};

}  // namespace muster::burn::hip
