// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks/package_manager.h"

#include <system_error>

namespace muster::agent {

namespace fs = std::filesystem;

PackageManager packageManager(const fs::path& root) {
  std::error_code error;
  for (const char* path : {"usr/bin/apt-get", "bin/apt-get"})
    if (fs::exists(root / path, error)) return PackageManager::Apt;
  return fs::exists(root / "usr/bin/dnf", error) ? PackageManager::Dnf : PackageManager::Apt;
}

std::vector<std::string> packageWords(PackageManager manager, std::vector<std::string> packages) {
  if (manager == PackageManager::Dnf)
    for (auto& package : packages)
      if (const auto equals = package.find('='); equals != std::string::npos) package[equals] = '-';
  return packages;
}

}  // namespace muster::agent
