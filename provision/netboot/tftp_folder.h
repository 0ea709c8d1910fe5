// SPDX-License-Identifier: Apache-2.0
// What dnsmasq gives by TFTP: iPXE for most machines; shim, GRUB, its configuration, kernel and
// initrds for those with Secure Boot.
//
// dnsmasq looks only into the folder that is named as who asks, where there is one
// (tftp-unique-root), and only an armed node has one. Who has no folder gets what lies in the root,
// and other machines may read all of it one way or another: nothing here is secret. Whoever is not
// armed finds no shim: its firmware goes on with the next boot option, the disk. (GRUB's `exit`
// would not do that: UEFI takes it for success.)
//
//   undionly.kpxe ipxe.efi                             links to Debian's files
//   grub/grub.cfg                                      for a machine that was disarmed while GRUB
//   came: starts it anew ramos-DIGEST/vmlinuz initrd.img agent.img          copies: dnsmasq may not
//   read where the originals are images/DIGEST/vmlinuz modules.img                  copies, of live
//   images 10.20.1.1/shimx64.efi grubx64.efi ramos images     links: shim and GRUB are always those
//   that are installed; of arm64 shimaa64.efi and grubaa64.efi, copies of what came with its RAM OS
//   10.20.1.1/grub/grub.cfg                            leads into the RAM OS
#pragma once

#include "base/result.h"
#include "provision/netboot/file_digests.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::provision {

struct PackedImage;
struct RamOs;

class TftpFolder {
 public:
  /// `reader`: the group of a dnsmasq with a user of its own; empty: it has this process's.
  explicit TftpFolder(std::filesystem::path root, std::string reader = "")
      : root_(std::move(root)), reader_(std::move(reader)) {}
  /// Lays out what everybody gets; whoever an earlier controller had armed is not any more.
  /// Errors: Internal (cannot be written)
  Result<void> start();
  /// `key`: the node's folder. Idempotent.
  /// Each copy is compared with its original by SHA-256, here and whenever either of them has
  /// changed: one that is stale or damaged is made anew. A machine that loads at that moment goes
  /// on with the set that it began with. `live`: the live image that it is for, whose kernel GRUB
  /// loads; nullptr: none. Loaders that come with the RAM OS are given, else those of this
  /// machine's packages. Errors: NotFound (shim or GRUB is not installed on this machine, with the
  /// package), Corrupt (a copy does not read as its original), Internal
  Result<void> arm(const std::string& key, const std::string& grub_script, const RamOs& ram_os,
                   const PackedImage* live);
  void disarm(const std::string& key);
  const std::filesystem::path& root() const { return root_; }

 private:
  struct Original {
    const char* name;
    std::filesystem::path from;
  };
  Result<void> copyTo(const std::string& folder, const std::vector<Original>& files);
  void forgetUnused(const std::string& folder_in_use);

  std::filesystem::path root_;
  std::string reader_;
  FileDigests digests_;
};

}  // namespace muster::provision
