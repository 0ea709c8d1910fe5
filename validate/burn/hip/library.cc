// SPDX-License-Identifier: Apache-2.0
#include "validate/burn/hip/library.h"

#include <fmt/format.h>

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace muster::burn::hip {
namespace {

constexpr const char* kRocmFolder = "/opt/rocm/lib/";

}  // namespace

Result<Library> Library::open(const char* variable, std::initializer_list<const char*> names,
                              const char* advice) {
  std::vector<std::string> files;
  if (const char* chosen = std::getenv(variable))
    files.emplace_back(chosen);
  else
    for (const std::string name : names)
      for (const auto& file : {name, kRocmFolder + name}) files.push_back(file);
  std::string why;
  Library library;
  library.advice_ = advice;
  for (const auto& file : files) {
    library.handle_ = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    library.file_ = file;
    if (library.handle_) return library;
    if (why.empty()) why = dlerror();
  }
  return fail(ErrorCode::NotFound,
              fmt::format("cannot load {}: {}; {}", files.front(), why, advice));
}

void* Library::symbol(const char* name) {
  void* found = dlsym(handle_, name);
  if (!found && missing_.empty()) missing_ = name;
  return found;
}

Result<void> Library::complete() const {
  if (missing_.empty()) return {};
  return fail(ErrorCode::Corrupt, fmt::format("{} has no {}; {}", file_, missing_, advice_));
}

}  // namespace muster::burn::hip
