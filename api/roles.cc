// SPDX-License-Identifier: Apache-2.0
#include "api/roles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::api {
namespace {

/// The verbs' names are known inside of functions only: "Run" is another thing in other sources.
constexpr auto namedVerbs() {
  using enum Verb;
  return std::array<std::pair<Verb, std::string_view>, 13>{{{Look, "look"},
                                                            {Plan, "plan"},
                                                            {Run, "run"},
                                                            {Approve, "approve"},
                                                            {Wipe, "wipe"},
                                                            {Erase, "erase"},
                                                            {Power, "power"},
                                                            {Console, "console"},
                                                            {Hold, "hold"},
                                                            {Validate, "validate"},
                                                            {Certify, "certify"},
                                                            {Rotate, "rotate"},
                                                            {Verb::Admin, "admin"}}};
}
constexpr auto kVerbs = namedVerbs();

struct RoleRow {
  Role role;
  std::string_view name;
  std::vector<Verb> verbs;
};

/// An approver does not run, so that who asks for work and who allows it are two.
const std::array<RoleRow, 5>& rows() {
  using enum Verb;
  static const std::array<RoleRow, 5> table{{
      {Role::Viewer, "viewer", {Look}},
      {Role::Operator, "operator", {Look, Plan, Run, Power, Console, Hold, Validate}},
      {Role::Approver, "approver", {Look, Plan, Approve}},
      {Role::Robot, "robot", {Look, Plan, Run, Validate}},
      {Role::Admin,
       "admin",
       {Look, Plan, Run, Approve, Wipe, Erase, Power, Console, Hold, Validate, Certify, Rotate,
        Verb::Admin}},
  }};
  return table;
}

}  // namespace

std::string_view toString(Verb verb) {
  return std::ranges::find(kVerbs, verb, &std::pair<Verb, std::string_view>::first)->second;
}

std::string_view toString(Role role) {
  return std::ranges::find(rows(), role, &RoleRow::role)->name;
}

std::optional<Role> parseRole(std::string_view text) {
  const auto found = std::ranges::find(rows(), text, &RoleRow::name);
  return found == rows().end() ? std::nullopt : std::optional(found->role);
}

const std::vector<Verb>& verbsOf(Role role) {
  return std::ranges::find(rows(), role, &RoleRow::role)->verbs;
}

bool may(Role role, Verb verb) {
  const auto& verbs = verbsOf(role);
  return std::ranges::find(verbs, verb) != verbs.end();
}

std::vector<std::string> rolesThatMay(Verb verb) {
  std::vector<std::string> out;
  for (const auto& row : rows())
    if (may(row.role, verb)) out.emplace_back(row.name);
  return out;
}

std::string allRoles() {
  std::string out;
  for (const auto& row : rows()) out.append(out.empty() ? "" : ", ").append(row.name);
  return out;
}

}  // namespace muster::api
