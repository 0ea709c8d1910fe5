// SPDX-License-Identifier: Apache-2.0
// What turns a written image into this node's system: its name, network, keys, agent, and a boot
// loader.
#pragma once

#include "agent/imaging/disks.h"
#include "agent/imaging/writer.h"

namespace muster::agent {

/// Files only, all below `root`; nothing is run. Without partitions in `layout` the system keeps
/// its own fstab. Errors: Internal
Result<void> configureSystem(const std::filesystem::path& root,
                             const wire::WriteImageParams& params,
                             const InstalledIdentity& identity, const Layout& layout,
                             const std::string& provisioning_mac,
                             const std::filesystem::path& agent_folder);

/// What the installed system must know of its other disks: fstab, crypttab, mdadm.conf, keys. Also
/// looks whether it has the programs. Errors: InvalidInput (a package is missing in the image,
/// named), Internal
Result<void> configureStorage(const std::filesystem::path& root, const StoragePlan& plan,
                              const std::map<std::string, std::string>& keys);

/// cloud-init's seed (NoCloud), or Ignition's configuration. Errors: InvalidInput (the image has no
/// such program), Internal
Result<void> configureUserData(const std::filesystem::path& root,
                               const wire::WriteImageParams& params);

/// Where the system enforces SELinux, each of its files gets its label (base/io/selinux.h): those
/// that were written into it from here have none. Runs the system's setfiles; needs root.
/// Errors: InvalidInput (a package is missing in the image, named), Internal (setfiles' words)
Result<void> labelSystem(const std::filesystem::path& root,
                         const std::function<void(const std::string&)>& notify);

/// GRUB for BIOS and for UEFI, both on the EFI system partition (mounted at `esp`), so that the
/// disk starts anywhere. Errors: Internal (grub-install's own words)
Result<void> installBootLoader(const std::filesystem::path& disk, const std::filesystem::path& esp,
                               const wire::WriteImageParams& params, const Layout& layout);
std::string grubConfiguration(const wire::WriteImageParams& params, const Layout& layout);

/// Grows the file system to its partition, mounts it with the ESP, configures, installs the boot
/// loader, unmounts. Blocking; needs root. `say` gets each step; `configure_more` the mounted root,
/// after everything else is configured.
Result<void> installSystem(
    const std::filesystem::path& disk, const Layout& layout, const wire::WriteImageParams& params,
    const InstalledIdentity& identity, const std::string& provisioning_mac,
    const std::filesystem::path& agent_folder,
    const std::function<void(const std::string&)>& notify,
    const std::function<Result<void>(const std::filesystem::path&)>& configure_more = {});

}  // namespace muster::agent
