// SPDX-License-Identifier: Apache-2.0
// Which package manager an installed system has.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace muster::agent {

enum class PackageManager { Apt, Dnf };
/// By the programs below `root`; Apt where there is neither.
PackageManager packageManager(const std::filesystem::path& root);
/// "name=version" as the package manager writes it: dnf wants "name-version".
std::vector<std::string> packageWords(PackageManager manager, std::vector<std::string> packages);

}  // namespace muster::agent
