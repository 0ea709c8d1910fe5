// SPDX-License-Identifier: Apache-2.0
// Images: the systems that nodes run, as they are declared.
#pragma once

#include "base/architecture.h"
#include "inventory/model/package_archive.h"

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

namespace muster::inventory {

/// What a system of dnf's packages does with SELinux from its first start on.
enum class SelinuxMode { Permissive, Enforcing, Disabled };
/// A system made of packages: apt's of a suite, or dnf's of a release. One of the two is set.
struct ImageBuild {
  std::string suite;  ///< "bookworm"
  std::vector<std::string> packages;
  std::string mirror;        ///< of Debian; empty: the mirror of the machine that builds
  std::string release = {};  ///< "9"
  std::vector<PackageArchive> archives =
      {};                                 ///< what the system is made from; dnf has at least one
  std::vector<std::string> modules = {};  ///< of dnf: streams to enable, "nodejs:18"
  SelinuxMode selinux = SelinuxMode::Permissive;  ///< of dnf; another than permissive is declared
  friend bool operator==(const ImageBuild&, const ImageBuild&) = default;
};
struct ImageImport {
  std::filesystem::path path;
  std::string sha256;
  friend bool operator==(const ImageImport&, const ImageImport&) = default;
};
/// A root file system that muster partitions for and makes bootable; a whole disk with its own
/// partitions and boot loader; or a system that runs in memory and is on no disk.
enum class ImageKind { RootFs, Disk, Live };
struct Image {
  std::string name;
  std::variant<ImageBuild, ImageImport> source;
  std::vector<std::string> authorized_keys;  ///< ssh keys for root
  ImageKind kind = ImageKind::RootFs;
  Architecture arch = Architecture::Amd64;  ///< of the nodes that it is for
  friend bool operator==(const Image&, const Image&) = default;
};

/// What the RAM OS has beside muster's own list: machines boot it from the network while they are
/// inspected and imaged. One for all nodes; nothing declared: Debian's kernel and muster's list.
struct RamOsSpec {
  std::string kernel;                    ///< a package of apt; empty: Debian's newest
  std::vector<std::string> packages;     ///< of apt, without kernels
  std::vector<std::string> modules;      ///< shell patterns below the kernel's folder of modules
  std::vector<PackageArchive> archives;  ///< beside Debian's own
  friend bool operator==(const RamOsSpec&, const RamOsSpec&) = default;
};

}  // namespace muster::inventory
