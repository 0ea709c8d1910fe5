// SPDX-License-Identifier: Apache-2.0
// A folder with a system of apt's packages: mmdebstrap behind it.
#pragma once

#include "base/architecture.h"
#include "base/io/process.h"
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
  Architecture architecture = Architecture::Amd64;
  /// Of another processor than this machine's: packages are only unpacked, their scripts do not run
  /// (docs/adr/0316). What those would have done `options` has to do.
  bool unpack_only = false;
};
/// Errors: Denied (not root), Internal with mmdebstrap's last words (no such package, mirror away,
/// wrong signature)
Result<void> installAptSystem(AptSystem system);

/// Of a node image: the base system, what was declared, and a kernel when none of them is one.
/// Errors: InvalidInput
Result<std::vector<std::string>> aptPackagesOf(const inventory::ImageBuild& build, bool ssh,
                                               Architecture architecture = Architecture::Amd64);
/// Of the RAM OS: muster's list, what was declared, and one kernel. Errors: InvalidInput
Result<std::vector<std::string>> aptPackagesOf(const inventory::RamOsSpec& spec,
                                               Architecture architecture);
/// Packages that are named after amd64, named after another processor; what only a PC has is left
/// out.
std::vector<std::string> packagesFor(Architecture architecture, std::vector<std::string> packages);
/// Whether this machine's kernel starts programs of that processor: natively, or by binfmt_misc.
/// Errors: Unavailable, with the package that helps
Result<void> checkRunsProgramsOf(Architecture architecture);
/// Where they come from: the declared archives, or the mirror, or what this machine itself uses.
/// Errors: NotFound (an archive's key)
Result<std::vector<std::string>> aptLinesOf(const inventory::ImageBuild& build);
/// Of the RAM OS: Debian's own archive, and the declared ones beside it. Errors: NotFound (an
/// archive's key)
Result<std::vector<std::string>> aptLinesOf(const inventory::RamOsSpec& spec,
                                            std::string_view suite);

/// A command in namespaces of its own, as root: what it mounts is gone with it, and so is every
/// process that it began, when it ends, is killed, or this process dies.
io::Command inOwnNamespaces(std::vector<std::string> words);

}  // namespace muster::provision
