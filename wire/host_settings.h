// SPDX-License-Identifier: Apache-2.0
// What a site wants of an installed system beside its packages: clock, certificate authorities,
// proxies, people, crash kernel, serial console. Declared in the inventory, carried as a file of a
// driver's settings, rendered and compared on the node (agent/host/). docs/adr/0305
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::wire {

/// Password: sudo asks for the user's. Free: it asks for none.
enum class SudoRight { None, Password, Free };

struct HostUser {
  std::string name;
  int uid = 0;  ///< 0: the system chooses
  std::vector<std::string> keys, groups;
  std::string shell = "/bin/bash";
  SudoRight sudo = SudoRight::None;
  std::string password_hash;  ///< crypt(5), "$y$…" or "$6$…"; empty: no password opens the account

  friend bool operator==(const HostUser&, const HostUser&) = default;
};

struct HostSettings {
  std::vector<std::string> time_servers;           ///< names or addresses; all that are asked
  std::map<std::string, std::string> authorities;  ///< PEM by name, trusted beside the system's own
  std::string http_proxy, https_proxy;             ///< URLs; empty: none
  std::vector<std::string> no_proxy;
  std::vector<HostUser> users;
  std::vector<std::string> ssh_user_authorities;  ///< public keys that sign users' certificates
  std::string crash_kernel;                       ///< "512M", of crashkernel=; empty: none
  std::string serial_console;                     ///< "ttyS1"; empty: the system's own
  int serial_baud = 115'200;

  friend bool operator==(const HostSettings&, const HostSettings&) = default;
};

std::string toJson(const HostSettings& settings);
/// Strict in what reaches a file that a daemon reads: no line ends, no blanks in words.
/// Errors: Corrupt (no JSON object), InvalidInput naming the member
Result<HostSettings> parseHostSettings(std::string_view text);

inline constexpr int kLeastUid = 1'000, kMostUid = 60'000;
/// What useradd(8) takes, and no word that sudoers or sshd read otherwise.
bool isUserName(std::string_view name);
/// crypt(5) of yescrypt or SHA-512; nothing weaker, and never a password.
bool isPasswordHash(std::string_view text);
/// A name or an address of either family.
bool isTimeServer(std::string_view text);
/// Certificates in PEM and nothing else: a private key in a trust store is everybody's.
bool isCertificatePem(std::string_view text);

/// Of its JSON: what a task of a driver carries.
inline constexpr std::size_t kMaxHostSettingsBytes = 96u << 10;
/// Of DriverParams::files: below the root.
inline constexpr std::string_view kHostSettingsFolder = "etc/muster/host.d";

}  // namespace muster::wire
