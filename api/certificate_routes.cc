// SPDX-License-Identifier: Apache-2.0
// Certificates of nodes, and what was revoked.
#include "api/answers.h"
#include "api/schema.h"
#include "app/site/site_keys.h"
#include "app/validation/certificates.h"
#include "base/json_input.h"
#include "inventory/model/cluster.h"
#include "validate/validate.h"

namespace muster::api {
namespace {

constexpr std::int64_t kOverrideHours = 24, kMostOverrideHours = 72;

struct Certificates {
  app::Session& session;
  app::Keys keys;
  std::unique_ptr<validate::CertificateStore> store;
};

Result<Certificates> open(SiteReader& reader) {
  TRY(session, reader.session());
  const auto& state = reader.options().state;
  TRY(keys, app::Keys::loadOrCreate(state));
  Certificates out{*session, std::move(keys), nullptr};
  out.store = validate::makeCertificateStore(session->cluster(), session->store(),
                                             session->controller->clock(), out.keys.certificates,
                                             state / "certificates");
  return out;
}

Reply certificate(SiteReader& reader, const Call& call) {
  TRY(certificates, open(reader));
  TRY(node, nodeOf(certificates.session, call, call.text("name")));
  TRY(found, certificates.store->find(node->name));
  if (!found)
    return std::unexpected(Problem(404, "not-found", node->name.str() + " has no certificate",
                                   "its gates have not passed yet: `muster why " +
                                       node->name.str() + "` says why (GET /nodes/" +
                                       node->name.str() + "/why)"));
  const auto valid = certificates.store->requireValid(node->name);
  TRY(json, parseJson(found->toJson(), kKeptJson));
  json["valid"] = valid.has_value();
  json["void_because"] = valid ? "" : valid.error().str();
  return Answer{200, std::move(json)};
}

nlohmann::json stateOf(const Certificates& certificates, const NodeName& node) {
  const auto valid = certificates.store->requireValid(node);
  nlohmann::json out = {{"node", node.str()},
                        {"valid", valid.has_value()},
                        {"void_because", valid ? "" : valid.error().str()}};
  const auto found = certificates.store->find(node);
  if (!found || !*found) return out;
  out["certificate"] = (*found)->id();
  out["expires_at"] = muster::toString((*found)->expires_at);
  if ((*found)->isOverride()) out["override_by"] = (*found)->override_by;
  return out;
}

/// Signatures are verified for the page alone.
Reply all(SiteReader& reader, const Call& call) {
  TRY(certificates, open(reader));
  const auto& cluster = certificates.session.cluster();
  TRY(named, namedNodes(certificates.session, call));
  std::vector<nlohmann::json> wanted;
  for (const auto& node : cluster.nodes)
    if (call.scope.has(cluster, node) && (named.empty() || named.contains(node.name.str())))
      wanted.emplace_back(node.name.str());
  TRY(out, page(call, std::move(wanted)));
  for (auto& item : out.body["items"])
    item = stateOf(certificates, NodeName(item.get<std::string>()));
  return out;
}

Reply revocations(SiteReader& reader, const Call&) {
  TRY(certificates, open(reader));
  const validate::Revocations revoked(reader.store(), reader.options().state / "certificates",
                                      certificates.keys.certificates);
  TRY(found, revoked.list());
  auto items = nlohmann::json::array();
  for (const auto& each : found->revoked)
    items.push_back({{"node", each.node.str()},
                     {"certificate", each.certificate},
                     {"at", muster::toString(each.at)},
                     {"by", each.by},
                     {"reason", each.reason}});
  auto out = list(std::move(items));
  out.body["number"] = found->number;
  return out;
}

Reply revoke(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  const auto options = reader.optionsFor(call.actor);
  TRY(had, app::revokeCertificate(options, node->name.str(), call.text("reason")));
  return Answer{200,
                {{"node", node->name.str()},
                 {"had_certificate", had},
                 {"list", app::revocationListOf(options.state).string()}}};
}

/// The inventory says which persons may; the role alone does not do.
Reply overrideGates(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(node, nodeOf(*session, call, call.text("name")));
  app::CertificateOverride request{node->name.str(), call.text("reason"),
                                   static_cast<int>(call.integer("hours", kOverrideHours))};
  request.user = call.identity.person.empty() ? call.identity.principal : call.identity.person;
  TRY(until, app::overrideCertificate(reader.optionsFor(call.actor), request));
  return Answer{200, {{"node", node->name.str()}, {"until", muster::toString(until)}}};
}

}  // namespace

void addCertificateRoutes(std::vector<ApiRoute>& routes) {
  routes.push_back({"GET",
                    "/nodes/{name}/certificate",
                    Verb::Look,
                    Reach::Scoped,
                    "Its certificate, and whether it holds",
                    {kNameField},
                    {},
                    {},
                    refTo("Certificate"),
                    200,
                    certificate});
  routes.push_back({"GET",
                    "/certificates",
                    Verb::Look,
                    Reach::Scoped,
                    "Whether the nodes' certificates hold",
                    {},
                    withPages({{"nodes", Kind::Hostlist, "These only"}}),
                    {},
                    listOf("CertificateState"),
                    200,
                    all});
  routes.push_back({"POST",
                    "/nodes/{name}/certificate/revoke",
                    Verb::Certify,
                    Reach::Scoped,
                    "Revoke its certificate and its passed gates: it must be validated again",
                    {kNameField},
                    {},
                    {{"reason", Kind::Text, "Why; recorded in the list and in the log", true}},
                    refTo("RevocationOrder"),
                    200,
                    revoke});
  routes.push_back(
      {"POST",
       "/nodes/{name}/certificate/override",
       Verb::Certify,
       Reach::Scoped,
       "Let it join although gates have not passed; only for persons that "
       "certificates.may_override of the inventory names",
       {kNameField},
       {},
       {{"reason", Kind::Text, "Why; recorded in the certificate and in the log", true},
        {"hours", Kind::Integer, "How long it is valid", false, 1, kMostOverrideHours}},
       refTo("CertificateOverride"),
       200,
       overrideGates});
  routes.push_back({"GET",
                    "/revocations",
                    Verb::Look,
                    Reach::Site,
                    "What was revoked, by whom and why",
                    {},
                    {},
                    {},
                    listOf("Revocation", {{"number", {{"type", "integer"}, {"minimum", 0}}}}),
                    200,
                    revocations});
}

}  // namespace muster::api
