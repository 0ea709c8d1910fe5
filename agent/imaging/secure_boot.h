// SPDX-License-Identifier: Apache-2.0
// The signed boot loader: firmware that checks signatures starts shim, shim starts Debian's GRUB,
// and that a signed kernel.
#pragma once

#include "base/result.h"

#include <filesystem>

namespace muster::agent {

/// Where the packages shim-signed and grub-efi-…-signed of this processor put them.
struct SignedLoader {
  std::filesystem::path shim = signedShim();
  std::filesystem::path grub = signedGrub();

  static std::filesystem::path signedShim();
  static std::filesystem::path signedGrub();
};

/// Puts both on the EFI system partition (mounted at `esp`) in the place of an unsigned GRUB; GRUB
/// goes on with grub/grub.cfg there. Errors: NotFound (this system has no signed loader), Internal
Result<void> installSignedLoader(const std::filesystem::path& esp, const SignedLoader& loader = {});

}  // namespace muster::agent
