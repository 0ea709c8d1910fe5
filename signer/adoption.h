// SPDX-License-Identifier: Apache-2.0
// Keys of a state folder become the signer's. Done by root when the package is configured, before a
// service starts, and after a restore.
#pragma once

#include "base/log.h"
#include "base/result.h"

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::signer {

struct UserIds {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// As the packages have it.
inline constexpr const char* kServiceUser = "muster";
inline constexpr const char* kSignerUser = "muster-signer";
inline constexpr const char* kSignerFolder = "/var/lib/muster-signer";
inline constexpr const char* kSignerSocket = "/run/muster-units/signer";
std::optional<UserIds> userOf(const char* name);

struct AdoptionRequest {
  std::filesystem::path state;   ///< of the service
  std::filesystem::path folder;  ///< of the signer; made when it is missing
  std::filesystem::path socket;  ///< where the signer listens
  /// Each folder is read and written as its owner, so that links in it lead to nothing that the
  /// owner may not open; nullopt: as this process.
  std::optional<UserIds> service, signer;
  /// Other keys that the signer has are moved aside: the state folder was restored.
  bool replace = false;
};

/// Moves the private halves, leaves the public ones and the note who signs. Answers what it did,
/// for people. Effect: idempotent; killed anywhere, each private half is in one of the two folders
/// or in both, and the next run goes on. Where nobody has keys yet none are made: the signer does
/// when the site first needs them. Errors: Conflict (the signer has other keys than the state
/// folder; or one was here and is lost), Corrupt (a file is no key, or no regular file), Denied,
/// those of the disk
Result<std::vector<std::string>> adoptKeys(const AdoptionRequest& request);

/// Private halves of a signer's folder, by their names in a state folder: for a backup, by root.
/// Empty: the folder has none. Errors: those of the disk
Result<std::map<std::string, Secret>> readSignerKeys(const std::filesystem::path& folder);

}  // namespace muster::signer
