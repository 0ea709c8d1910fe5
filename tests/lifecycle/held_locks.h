// SPDX-License-Identifier: Apache-2.0
// Which processes hold POSIX locks on a file, as the kernel says it.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

namespace muster::test {

/// The inode of a file; 0: there is none of this name.
inline ino_t inodeOf(const std::string& file) {
  struct stat status{};
  return ::stat(file.c_str(), &status) == 0 ? status.st_ino : 0;
}

/// Lines are "1: POSIX  ADVISORY  READ 1234 08:01:131 1073741826 1073742335".
inline std::set<pid_t> lockHoldersOf(const std::string& file) {
  std::set<pid_t> holders;
  const auto inode = inodeOf(file);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, how, what, place;
    pid_t pid = 0;
    words >> number >> kind >> how >> what >> pid >> place;
    if (kind == "POSIX" && place.substr(place.rfind(':') + 1) == std::to_string(inode))
      holders.insert(pid);
  }
  return holders;
}

}  // namespace muster::test
