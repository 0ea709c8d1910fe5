// SPDX-License-Identifier: Apache-2.0
#include "api/answers.h"
#include "api/schema.h"

namespace muster::api {
namespace {

constexpr std::int64_t kDefaultHours = 24 * 90;

Reply listed(SiteReader& reader, const Call&) {
  TRY(tokens, Tokens(reader.store()).list());
  auto items = nlohmann::json::array();
  for (const auto& token : tokens) items.push_back(toJson(token));
  return list(std::move(items));
}

Reply create(SiteReader& reader, const Call& call) {
  const auto role = parseRole(call.text("role"));
  if (!role)
    return std::unexpected(Problem(400, "invalid-input", "\"" + call.text("role") + "\" is no role",
                                   "there are: " + allRoles()));
  const TokenRequest request{call.text("name"),
                             *role,
                             {call.texts("pools"), call.texts("racks"), call.text("nodes")},
                             static_cast<int>(call.integer("hours", kDefaultHours)),
                             call.text("owner")};
  const auto& who = call.identity;
  auto issuers = who.issuers;
  if (!who.account.empty()) issuers.push_back(who.account);
  TRY(created,
      Tokens(reader.store())
          .create(request, {call.actor, who.person.empty() ? who.principal : who.person, issuers},
                  reader.now()));
  Answer out{200, toJson(created.token)};
  out.body["token"] = created.secret;
  out.headers["Cache-Control"] = "no-store";
  return out;
}

Reply revoke(SiteReader& reader, const Call& call) {
  TRY(revoked, Tokens(reader.store()).revoke(call.text("id"), call.actor, reader.now()));
  (void)revoked;
  return Answer{204, nullptr};
}

}  // namespace

void addTokenRoutes(std::vector<ApiRoute>& routes) {
  routes.push_back({"GET",
                    "/tokens",
                    Verb::Admin,
                    Reach::Site,
                    "API tokens; never what they are",
                    {},
                    {},
                    {},
                    listOf("Token"),
                    200,
                    listed});
  routes.push_back(
      {"POST",
       "/tokens",
       Verb::Admin,
       Reach::Site,
       "Create a token; it is shown this once",
       {},
       {},
       {{"name", Kind::Text, "Letters, digits, '.', '_', '-'", true},
        {"role", Kind::Text, "viewer, operator, approver, robot or admin", true},
        {"owner", Kind::Text, "The person who uses it; default: who asks"},
        {"hours", Kind::Integer, "How long it lives", false, 1, kMaxTokenHours},
        {"pools", Kind::Texts, "It opens the nodes of these; without pools, racks and nodes: all"},
        {"racks", Kind::Texts, "And the nodes in these"},
        {"nodes", Kind::Hostlist, "And these"}},
       refTo("Token"),
       200,
       create});
  routes.push_back({"DELETE",
                    "/tokens/{id}",
                    Verb::Admin,
                    Reach::Site,
                    "Revoke a token",
                    {{"id", Kind::Text, "Its id or name", true}},
                    {},
                    {},
                    nlohmann::json(),
                    204,
                    revoke});
}

}  // namespace muster::api
