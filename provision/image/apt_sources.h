// Which Debian mirror an image is built from: the one that this machine itself uses.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace muster::provision {

/// The Debian lines (release, -updates, -security; component main) of one sources file, in one-line form:
/// "deb http://deb.debian.org/debian bookworm main". Other repositories of this machine never get into an image.
/// `deb822`: the file is a .sources file.
std::vector<std::string> debianLines(std::string_view text, bool deb822, std::string_view suite);

/// Those of all files of an apt folder ("/etc/apt"), without repetition; empty when there are none.
std::vector<std::string> hostDebianLines(const std::filesystem::path& apt_folder, std::string_view suite);

}  // namespace muster::provision
