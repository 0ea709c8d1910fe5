// SPDX-License-Identifier: Apache-2.0
// The files that a site's settings become on an installed system, for what that system has
// (Debian's places or those of EL, chrony or systemd-timesyncd). Pure, but for the look at which of
// them is there. docs/adr/0305
#pragma once

#include "wire/host_settings.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::agent {

struct HostFile {
  std::string path;  ///< below the root
  std::string content;
  unsigned mode = 0644;

  friend bool operator==(const HostFile&, const HostFile&) = default;
};

enum class TimeClient { None, Chrony, Timesyncd };
/// chronyd where it is installed: it and timesyncd do not run side by side.
TimeClient timeClientOf(const std::filesystem::path& root);

/// Which keys of a user sshd takes beside those in its home.
inline constexpr std::string_view kUserKeysFolder = "etc/muster/ssh/keys";
/// "etc/muster/ssh/NAME-user-authorities.pub"
std::string userAuthoritiesFile(const std::string& name);
/// "etc/sudoers.d/90-muster-NAME"
std::string sudoersFile(const std::string& name);
/// The certificates of a PEM text, each with its lines.
std::vector<std::string> certificatesIn(const std::string& pem);
/// Where the trust store gathers all certificates.
std::string trustBundleOf(const std::filesystem::path& root);

/// Ordered by path; the same settings are the same files.
/// Errors: NotFound naming the package that the system lacks
Result<std::vector<HostFile>> hostFiles(const std::filesystem::path& root, const std::string& name,
                                        const wire::HostSettings& settings);

}  // namespace muster::agent
