// SPDX-License-Identifier: Apache-2.0
// Trees of systems have the modes that their packages and archives mean, whatever the umask of who
// builds them: units of muster's have 0077.
#pragma once

#include <sys/stat.h>

namespace muster::provision {

class UmaskGuard {
 public:
  explicit UmaskGuard(mode_t mask) : before_(::umask(mask)) {}
  ~UmaskGuard() { ::umask(before_); }
  UmaskGuard(const UmaskGuard&) = delete;
  UmaskGuard& operator=(const UmaskGuard&) = delete;

 private:
  mode_t before_;
};
inline constexpr mode_t kTreeUmask = 0022;

}  // namespace muster::provision
