// SPDX-License-Identifier: Apache-2.0
// A SystemBuilder that makes file systems of bytes instead of packages.
#pragma once

#include "base/io/files.h"
#include "inventory/model/images.h"
#include "provision/images/system_builder.h"

#include <atomic>
#include <functional>
#include <string>

namespace muster::test {

class FakeSystemBuilder final : public provision::SystemBuilder {
 public:
  std::string image_bytes = std::string(5u << 20, '\0');  ///< what buildRootFs writes
  std::optional<Error> failure;                           ///< what it answers instead
  std::function<void()> during_build;
  std::atomic<int>* builds = nullptr;  ///< counted when set

  Result<void> buildRootFs(const inventory::Image&, const std::filesystem::path& work,
                           const std::filesystem::path& image_file,
                           const provision::Say&) override {
    if (builds != nullptr) ++*builds;
    if (during_build) during_build();
    TRY_OK(io::writeFileAtomic(work / "left-over", "a builder leaves things behind"));
    if (failure) return fail(*failure);
    return io::writeFileAtomic(image_file, image_bytes);
  }

  Result<void> buildRamOs(const inventory::RamOsSpec&, Architecture architecture,
                          const std::filesystem::path& work, const std::filesystem::path& out,
                          const provision::Say&) override {
    if (builds != nullptr) ++*builds;
    if (failure) return fail(*failure);
    TRY_OK(io::makeDirs(work));
    TRY_OK(io::writeFileAtomic(out / "vmlinuz", "kernel"));
    if (architecture == Architecture::Arm64)
      for (const char* loader : {"shim.efi", "grub.efi"})
        TRY_OK(io::writeFileAtomic(out / loader, loader));
    return io::writeFileAtomic(out / "initrd.img", "initrd");
  }
};

}  // namespace muster::test
