// Seam: makes file systems from packages (mmdebstrap behind it). Tests put a small folder in its place.
#pragma once

#include "base/result.h"
#include "inventory/cluster.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>

namespace muster::provision {

using Say = std::function<void(std::string_view)>;

class SystemBuilder {
 public:
  virtual ~SystemBuilder() = default;
  /// Writes the image's root file system (ext4) to `image_file`. `work` is an empty folder that the caller removes.
  /// Errors: InvalidInput (declaration), Denied (not root), Unavailable (mirror), Internal (a tool failed, its words are quoted)
  virtual Result<void> buildRootFs(const inventory::Image& image, const std::filesystem::path& work, const std::filesystem::path& image_file,
                                   const Say& say) = 0;
  /// Writes `out`/vmlinuz and `out`/initrd.img.
  virtual Result<void> buildRamOs(const std::filesystem::path& work, const std::filesystem::path& out, const Say& say) = 0;
};

std::unique_ptr<SystemBuilder> makeDebianBuilder();

/// An ext4 file with the content of a folder, made without mounting anything. Layout and
/// identities are fixed; what still differs between two builds are the change times of inodes, a few chunks.
/// Units: sized to the content plus room for its journal and growth until it fills its disk
Result<void> makeExt4(const std::filesystem::path& folder, const std::filesystem::path& image_file);

}  // namespace muster::provision
