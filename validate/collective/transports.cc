// SPDX-License-Identifier: Apache-2.0
#include "validate/collective/transports.h"

#include "validate/collective/rccl/rccl.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace muster::collective {
namespace {

Result<NcclFound> openNvidias(const std::filesystem::path& folder_of_program) {
  const auto file = folder_of_program / kNcclFile;
  std::error_code error;
  if (!std::filesystem::exists(file, error))
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "there is no {}: this muster was built without NCCL; transport tcp works without it",
            file.string()));
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: ranks live in it
  if (!library)
    return fail(
        ErrorCode::NotFound,
        fmt::format(
            "cannot load {}: {}; install NCCL (libnccl2), or set LD_LIBRARY_PATH to where it is",
            file.string(), dlerror()));
  const auto open = reinterpret_cast<OpenNccl>(dlsym(library, kNcclEntry));
  if (!open)
    return fail(ErrorCode::Corrupt,
                fmt::format("{} is of another version: it has no {}", file.string(), kNcclEntry));
  Result<NcclFound> found = fail(ErrorCode::Internal, "not opened");
  open(found);
  return found;
}

}  // namespace

Result<NcclFound> openNccl(const std::filesystem::path& folder_of_program) {
  auto nvidias = openNvidias(folder_of_program);
  if (nvidias || nvidias.error().code() != ErrorCode::NotFound) return nvidias;
  auto amds = openRccl();
  if (amds || amds.error().code() != ErrorCode::NotFound) return amds;
  return fail(ErrorCode::NotFound,
              fmt::format("{}; and {}", nvidias.error().text(), amds.error().text()));
}

}  // namespace muster::collective
