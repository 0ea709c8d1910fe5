// SPDX-License-Identifier: Apache-2.0
// Images: built or imported once, packed (zstd chunks + signed index), found by digest.
#pragma once

#include "base/held.h"
#include "base/io/crypto.h"
#include "base/io/http.h"
#include "base/result.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster {

enum class Architecture;
class Workers;

}  // namespace muster

namespace muster::provision {

struct PackedImage;
struct RamOs;

class ImageStore {
 public:
  virtual ~ImageStore() = default;
  /// The packed image for this declaration when it is there. The key is the SHA-256 of the build's
  /// inputs.
  virtual Result<std::optional<PackedImage>> find(const inventory::Image& image) const = 0;
  /// Builds (mmdebstrap → ext4 → pack), signs and keeps it; answers at once when it is there. Says
  /// what it does. `over`: the image whose layout a root file system goes on with, as
  /// choosePredecessor (predecessor.h) wants it; empty: it chooses.
  virtual Result<PackedImage> build(const inventory::Image& image,
                                    std::function<void(std::string_view)> say,
                                    const std::string& over) = 0;
  Result<PackedImage> build(const inventory::Image& image,
                            std::function<void(std::string_view)> say);
  virtual Result<std::optional<RamOs>> findRamOs(Architecture architecture) const = 0;
  virtual Result<RamOs> buildRamOs(Architecture architecture,
                                   std::function<void(std::string_view)> say) = 0;
  /// GET /images/DIGEST/{index.json,pack}, of live images {vmlinuz,modules.img} too;
  /// /ramos/{vmlinuz,initrd.img,agent.img}, of arm64 below /ramos/arm64/
  virtual std::vector<io::Route> routes() const = 0;
};

struct ImageStoreOptions {
  std::filesystem::path
      cache;  ///< ~/.cache/muster: built file systems and packs, keyed by inputs; shared by states
  std::filesystem::path agent_binary;  ///< muster-agent to put into RAM OS; of another processor
                                       ///< it is in a folder of its own beside it (agentFor)
  io::SigningKey key;                  ///< signs indexes
  Held<inventory::RamOsSpec> ram_os = {};  ///< as declared
  Workers* workers =
      nullptr;  ///< for what requests need read; none: it is read at once. They outlive the store
};
std::unique_ptr<ImageStore> openImageStore(ImageStoreOptions options);

}  // namespace muster::provision
