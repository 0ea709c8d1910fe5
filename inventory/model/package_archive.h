// SPDX-License-Identifier: Apache-2.0
// An archive of packages: what images are made from and drivers are installed from.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::inventory {

/// An archive of packages with the key that signs it.
struct PackageArchive {
  std::string name;
  std::string url;
  std::string suite;                    ///< apt; empty: a flat archive. dnf has none
  std::vector<std::string> components;  ///< apt
  std::filesystem::path key;            ///< OpenPGP public key, armoured or not
  friend bool operator==(const PackageArchive&, const PackageArchive&) = default;
};

}  // namespace muster::inventory
