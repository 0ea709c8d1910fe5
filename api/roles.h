// SPDX-License-Identifier: Apache-2.0
// Who may do what: roles are sets of verbs, in one table.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

enum class Verb {
  Look,
  Plan,
  Run,
  Approve,
  Wipe,
  Erase,
  Power,
  Console,
  Hold,  ///< quarantine, a person's drain, circuit breakers
  Validate,
  Certify,
  Rotate,
  Admin,  ///< identities
};
std::string_view toString(Verb verb);

enum class Role { Viewer, Operator, Approver, Robot, Admin };
std::string_view toString(Role role);
std::optional<Role> parseRole(std::string_view text);

/// In the order of the table.
const std::vector<Verb>& verbsOf(Role role);
bool may(Role role, Verb verb);
/// Those that would do, in the order of the table.
std::vector<std::string> rolesThatMay(Verb verb);
/// "viewer, operator, …", for messages.
std::string allRoles();

}  // namespace muster::api
