// SPDX-License-Identifier: Apache-2.0
// Where the packages of an image come from: the Debian mirror that this machine itself uses, or
// archives with their keys.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

/// The Debian lines (release, -updates, -security; component main) of one sources file, in one-line
/// form: "deb http://deb.debian.org/debian bookworm main". Other repositories of this machine never
/// get into an image. `deb822`: the file is a .sources file.
std::vector<std::string> debianLines(std::string_view text, bool deb822, std::string_view suite);

/// Those of all files of an apt folder ("/etc/apt"), without repetition; empty when there are none.
std::vector<std::string> hostDebianLines(const std::filesystem::path& apt_folder,
                                         std::string_view suite);

/// The key of an archive, as package tools want it named: absolute, no link. Errors: NotFound
Result<std::filesystem::path> archiveKey(const inventory::PackageArchive& archive);

}  // namespace muster::provision
