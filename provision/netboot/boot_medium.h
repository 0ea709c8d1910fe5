// SPDX-License-Identifier: Apache-2.0
// The boot medium: an image that a BMC shows to its machine as a CD or as a USB stick. One for all
// nodes of a processor; what is a node's own is 16 KiB at a known place, which are replaced when
// the image is sent (io::FileOverlay). So it costs its space once, and nothing in it is secret.
//
//   ISO 9660, with an EFI system partition behind it that El Torito and a GPT both name:
//   EFI/BOOT/BOOTX64.EFI, grubx64.efi (of arm64 BOOTAA64.EFI, grubaa64.efi)   signed; in the ESP
//   grub/grub.cfg       in both: finds the medium by its id, goes on with the next
//   muster/node.cfg     the node's own: GRUB's words that load the RAM OS
//   muster/ID           names the medium: content that differs has another id
//   ramos/vmlinuz initrd.img agent.img; images/DIGEST/vmlinuz modules.img of a live image
#pragma once

#include "base/architecture.h"
#include "base/io/http.h"
#include "base/result.h"
#include "provision/netboot/file_digests.h"

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

namespace muster::provision {

struct PackedImage;
struct RamOs;

/// What a medium is made of: name on it → file.
struct MediumParts {
  Architecture architecture = Architecture::Amd64;
  std::filesystem::path shim, grub;
  std::string loaders_package;  ///< what to install where a loader is missing
  std::vector<std::pair<std::string, std::filesystem::path>> files;
};
/// `live`: the live image whose kernel is started; nullptr: the RAM OS's own. Loaders are those of
/// this machine's packages, or those that come with the RAM OS.
MediumParts mediumParts(Architecture architecture, const RamOs& ram_os, const PackedImage* live);

struct BootMedium {
  std::filesystem::path image;
  std::uint64_t parameters_at = 0;  ///< offset in bytes
};
inline constexpr std::size_t kMediumParameterBytes = 16u << 10;

/// GRUB's words for one node, as they are laid over the image.
/// Errors: InvalidInput (they do not fit)
Result<io::FileOverlay> mediumParameters(const BootMedium& medium, const std::string& script);

/// A folder of media. Any thread; one is made at a time.
class BootMedia {
 public:
  explicit BootMedia(std::filesystem::path folder) : folder_(std::move(folder)) {}
  /// Blocking: seconds where it is not there yet. One that is there is compared with the digest of
  /// what was made; one that differs is made anew. Errors: NotFound (a loader, xorriso or mtools is
  /// not installed, with the package; a file of the RAM OS), Corrupt (a file is not read as it was
  /// before), Internal
  Result<BootMedium> make(const MediumParts& parts);

 private:
  Result<std::string> idOf(const MediumParts& parts);
  Result<BootMedium> kept(const std::string& id);
  Result<BootMedium> build(const std::string& id, const MediumParts& parts);
  void forgetOthers(const std::string& id);

  std::filesystem::path folder_;
  std::mutex mutex_;
  FileDigests digests_;
};

}  // namespace muster::provision
