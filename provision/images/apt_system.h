// SPDX-License-Identifier: Apache-2.0
// A folder with a system of apt's packages: mmdebstrap behind it.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"
#include "provision/images/system_builder.h"

#include <map>
#include <string>
#include <vector>

namespace muster::provision {

struct AptSystem {
  std::string variant, suite;  ///< mmdebstrap's words
  std::vector<std::string> packages;
  std::vector<std::string> lines;    ///< of sources.list: "deb [signed-by=/keys/a.gpg]
                                     ///< http://archive.ubuntu.com/ubuntu noble main universe"
  std::vector<std::string> options;  ///< hooks
  std::map<std::string, std::string> env;
  std::filesystem::path root, recipes, out;
};
/// Errors: Denied (not root), Internal with mmdebstrap's last words (no such package, mirror away,
/// wrong signature)
Result<void> installAptSystem(AptSystem system);

/// Of a node image: the base system, what was declared, and a kernel when none of them is one.
/// Errors: InvalidInput
Result<std::vector<std::string>> aptPackagesOf(const inventory::ImageBuild& build, bool ssh);
/// Where they come from: the declared archives, or the mirror, or what this machine itself uses.
/// Errors: NotFound (an archive's key)
Result<std::vector<std::string>> aptLinesOf(const inventory::ImageBuild& build);

/// The proxy that this machine's apt uses, as environment variables; never stored in an image.
std::map<std::string, std::string> proxyEnvironment();

}  // namespace muster::provision
