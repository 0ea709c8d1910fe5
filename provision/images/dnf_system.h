// SPDX-License-Identifier: Apache-2.0
// A folder with a system of dnf's packages: RHEL, Rocky, AlmaLinux, Fedora. dnf of the machine that
// builds does it; Debian has one.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::provision {

struct DnfSystem {
  const inventory::ImageBuild& build;
  std::vector<std::string> packages;  ///< dnf's words: name, name-version
  std::filesystem::path root, recipes, work;
  std::filesystem::path fetch_socket =
      {};  ///< of the fetch unit (docs/adr/0437); empty: dnf fetches
};
/// Every package must be signed by the key of its archive. The result starts by /vmlinuz and
/// /initrd.img as every tree does; of one that enforces SELinux all files are labelled. Errors:
/// Denied (not root), NotFound (no dnf here, an archive's key), InvalidInput (no kernel among the
/// packages), Internal with dnf's
///         last words (no such package, archive away, wrong signature)
Result<void> installDnfSystem(DnfSystem system);

/// Of a node image: the base system and what was declared, pins as dnf writes them.
std::vector<std::string> dnfPackagesOf(const inventory::ImageBuild& build, bool ssh);

/// dnf's configuration with the archives and nothing else. Errors: NotFound (a key)
Result<std::string> dnfConfiguration(const inventory::ImageBuild& build);

}  // namespace muster::provision
