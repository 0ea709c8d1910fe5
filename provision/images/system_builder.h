// SPDX-License-Identifier: Apache-2.0
// Seam: makes file systems from packages (mmdebstrap and dnf behind it). Tests put a small folder
// in its place.
#pragma once

#include "base/architecture.h"
#include "base/result.h"
#include "inventory/model/fwd.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

namespace muster::provision {

/// When what the build itself made is said to have been made, in seconds since 1970. Any fixed
/// moment will do; it must not be in a node's future.
inline constexpr std::int64_t kImageEpochSeconds = 1735689600;

using Say = std::function<void(std::string_view)>;

class SystemBuilder {
 public:
  virtual ~SystemBuilder() = default;
  /// Writes the image's root file system (ext4; of a live image squashfs) to `image_file`. `work`
  /// is an empty folder that the caller removes. Errors: InvalidInput (declaration), Denied (not
  /// root), Unavailable (mirror), Internal (a tool failed, its words are quoted)
  virtual Result<void> buildRootFs(const inventory::Image& image, const std::filesystem::path& work,
                                   const std::filesystem::path& image_file, const Say& say) = 0;
  /// Writes `out`/vmlinuz and `out`/initrd.img; of arm64 also `out`/shim.efi and `out`/grub.efi, by
  /// which its firmware boots from the network. Errors: as buildRootFs; InvalidInput also where
  /// `spec` names packages that bring several kernels, or modules that its kernel does not have
  virtual Result<void> buildRamOs(const inventory::RamOsSpec& spec, Architecture architecture,
                                  const std::filesystem::path& work,
                                  const std::filesystem::path& out, const Say& say) = 0;
};

/// Where the fetch unit listens, by which packages come to a builder without a network
/// (docs/adr/0437); empty: mmdebstrap and dnf fetch by themselves.
std::unique_ptr<SystemBuilder> makePackageBuilder(std::filesystem::path fetch_socket = {});

/// An ext4 file with the content of a folder, made without mounting anything. Layout, identities
/// and the times that tell when it was built are fixed, so that equal content is an equal image.
/// Units:  sized to the content plus room for its journal and growth until it fills its disk;
/// `since`: seconds since 1970, files
///         that are not older were made by the build itself
Result<void> makeExt4(const std::filesystem::path& folder, const std::filesystem::path& image_file,
                      std::int64_t since = std::numeric_limits<std::int64_t>::max());

/// Whether a file system's UUID (16 bytes) is the one that makeExt4 gives.
bool hasImageUuid(std::span<const std::uint8_t, 16> uuid);

}  // namespace muster::provision
