// SPDX-License-Identifier: Apache-2.0
// The user of the packages' services (docs/adr/0342). The state folder is its own, and muster
// insists on one owner: root who works with that folder becomes this user first, so that it leaves
// no file behind that the service cannot read, and follows no link that the service could put
// there.
#pragma once

#include "base/result.h"

#include <filesystem>
#include <string>

namespace muster::app {

inline constexpr const char* kServiceUser = "muster";

/// Whether this process is the services' user.
bool isServiceUser();

/// Whether `state` is a folder of that user: a root command there works as that user.
bool belongsToServiceUser(const std::filesystem::path& state);

/// Root, before threads begin, where `state` is a folder of the user `name`: becomes that user for
/// good, with its groups, its home, and the capabilities of the services alone (kKeptCapabilities),
/// also for programs that it starts. Answers whether it did; nothing happens without root, without
/// such a user, or where the folder is not there or belongs to somebody else. Errors: Denied (the
/// kernel refuses a step: nothing may be done half-way, so the caller ends)
Result<bool> becomeOwnerOf(const std::filesystem::path& state,
                           const std::string& name = kServiceUser);

/// Gives a tree to whom `like` belongs, links themselves and not what they point to; root's trees
/// only, which nobody else writes to. Without root, or where they have one owner, nothing happens.
/// Errors: Denied
Result<void> giveTree(const std::filesystem::path& tree, const std::filesystem::path& like);

}  // namespace muster::app
