// SPDX-License-Identifier: Apache-2.0
// User data of installed systems: cloud-init's (NoCloud) or Ignition's, with the node's own values
// filled in.
//
// Told by content: JSON with "ignition" is Ignition's; "#cloud-config", a script ("#!"), a MIME
// message or "#include" is cloud-init's.
// ${muster.hostname}, .address, .mac, .rack and .profile become the node's; another name behind
// "muster." is a mistake.
#pragma once

#include "base/result.h"
#include "inventory/model/fwd.h"

#include <string>
#include <string_view>

namespace muster::inventory {

inline constexpr std::size_t kMaxUserDataBytes = 60u << 10;

enum class UserDataKind { CloudInit, Ignition };

/// Whether a node could use it. Errors: InvalidInput (too large, neither of the two, no YAML or
/// JSON, unknown ${muster.…})
Result<UserDataKind> checkUserData(std::string_view content);

/// The user data of one node; the content must have been checked.
std::string userDataFor(const Profile& profile, const Node& node);

}  // namespace muster::inventory
