// SPDX-License-Identifier: Apache-2.0
// SELinux of a system that lies in a folder: a tree that is being built, a root that is being
// installed. What is written into it from outside has no label; a system that enforces does not
// start such files (docs/adr/0404).
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>
#include <string_view>

namespace muster::io {

/// Below the system's root.
inline constexpr const char* kSelinuxConfig = "etc/selinux/config";

/// Source: selinux_config(5)
struct SelinuxConfig {
  bool enforcing = false;
  std::string policy = "targeted";  ///< a folder below /etc/selinux
  /// Below the system's root: which path has which label.
  std::string fileContexts() const;
};

/// The first SELINUX= that says something holds, and the last SELINUXTYPE=, as libselinux reads
/// them. A policy whose name leads elsewhere is left out.
SelinuxConfig parseSelinuxConfig(std::string_view text);

/// Gives each file of a system that enforces SELinux the label that its own policy has for it, by
/// its own setfiles in a chroot. Labels that are right are not written. Needs root; nothing that is
/// not part of the system may be mounted below `root`.
/// Returns: false where the system does not enforce, and nothing was done
/// Errors:  InvalidInput (it enforces, without a policy or setfiles: the packages are named),
///          Internal (setfiles' words)
Result<bool> labelTree(const std::filesystem::path& root);

}  // namespace muster::io
