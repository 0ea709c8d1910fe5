// What turns a written image into this node's system: its name, network, keys, agent, and a boot loader.
#pragma once

#include "agent/writer/disks.h"
#include "agent/writer/writer.h"

namespace muster::agent {

/// Files only, all below `root`; nothing is run. Errors: Internal
Result<void> configureSystem(const std::filesystem::path& root, const WriteImageParams& params, const InstalledIdentity& identity,
                             const Layout& layout, const std::string& provisioning_mac, const std::filesystem::path& agent_folder);

/// GRUB for BIOS and for UEFI, both on the EFI system partition (mounted at `esp`), so that the disk starts anywhere.
/// Errors: Internal (grub-install's own words)
Result<void> installBootLoader(const std::filesystem::path& disk, const std::filesystem::path& esp, const WriteImageParams& params,
                               const Layout& layout);
std::string grubConfiguration(const WriteImageParams& params, const Layout& layout);

/// Grows the file system to its partition, mounts it with the ESP, configures, installs the boot loader, unmounts.
/// Blocking; needs root. `say` gets each step.
Result<void> installSystem(const std::filesystem::path& disk, const Layout& layout, const WriteImageParams& params, const InstalledIdentity& identity,
                           const std::string& provisioning_mac, const std::filesystem::path& agent_folder,
                           const std::function<void(const std::string&)>& say);

}  // namespace muster::agent
