// SPDX-License-Identifier: Apache-2.0
#include "agent/imaging/secure_boot.h"

#include "base/architecture.h"
#include "base/io/files.h"

#include <fmt/format.h>

namespace muster::agent {

namespace fs = std::filesystem;

namespace {

// The signed GRUB's own prefix. It loads no modules from a disk, so nothing but this file is sought
// there.
constexpr const ArchitectureTraits& kOwn = traitsOf(kBuiltFor);
constexpr const char* kGrubFolder = "EFI/debian";
constexpr const char* kGrubConfig =
    "# Written by muster with the image.\nsource ($root)/grub/grub.cfg\n";

}  // namespace

fs::path SignedLoader::signedShim() {
  return fmt::format("/usr/lib/shim/shim{}.efi.signed", kOwn.efi_suffix);
}

fs::path SignedLoader::signedGrub() {
  return fmt::format("/usr/lib/grub/{}-signed/grub{}.efi.signed", kOwn.grub_platform,
                     kOwn.efi_suffix);
}

Result<void> installSignedLoader(const fs::path& esp, const SignedLoader& loader) {
  const fs::path boot = esp / "EFI/BOOT";
  TRY_OK(io::makeDirs(boot));
  // BOOTX64.EFI is what firmware starts by itself; grubx64.efi is what shim looks for beside it.
  const std::pair<const fs::path&, fs::path> files[] = {
      {loader.shim, boot / kOwn.removable_loader},
      {loader.grub, boot / fmt::format("grub{}.efi", kOwn.efi_suffix)}};
  for (const auto& [from, to] : files) {
    std::error_code error;
    if (!fs::exists(from, error))
      return fail(ErrorCode::NotFound, fmt::format("the RAM OS has no {}, which Secure Boot needs; "
                                                   "build it anew with `muster image build`",
                                                   from.string()));
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
    if (error)
      return fail(ErrorCode::Internal,
                  fmt::format("cannot write {}: {}", to.string(), error.message()));
  }
  TRY_OK(io::makeDirs(esp / kGrubFolder));
  return io::writeFileAtomic(esp / kGrubFolder / "grub.cfg", kGrubConfig);
}

}  // namespace muster::agent
