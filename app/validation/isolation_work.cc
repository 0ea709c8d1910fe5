// SPDX-License-Identifier: Apache-2.0
#include "app/validation/isolation_work.h"

#include "app/site/state_folder.h"
#include "app/validation/isolation_log_copy.h"
#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/json_input.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"
#include "validate/gates.h"
#include "validate/isolate/run_log.h"
#include "validate/pair_partner.h"
#include "validate/validate.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <set>

namespace muster::app {

namespace isolate = validate::isolate;

namespace {
constexpr std::string_view kIsolationFacet = "isolation";
}  // namespace

std::string whyNotDisturb(const inventory::Cluster& cluster, const NodeName& name,
                          const std::optional<lifecycle::Fact>& pool) {
  if (cluster.profileOf(*cluster.findNode(name)).pool.empty()) return {};
  return validate::whyNotDisturb(name, pool);
}

std::vector<NodeName> nodesOfFabrics(const inventory::Cluster& cluster) {
  std::vector<NodeName> out;
  for (const auto& node : cluster.nodes)
    if (!cluster.profileOf(node).fabric.empty()) out.push_back(node.name);
  return out;
}

lifecycle::Action testOf(const NodeName& node) {
  lifecycle::Action out;
  out.facet = {lifecycle::Subject(node), FacetName(std::string(kIsolationFacet))};
  out.id = out.facet.str();
  out.phase = kIsolationFacet;
  out.to = "tested";
  out.reason = "it is tested against the other nodes of this run";
  return out;
}

namespace {

constexpr std::chrono::seconds kAgentReconnectTimeout{
    45};  ///< agents dial again so long after a controller's start
constexpr std::chrono::hours kResumeWindow{6};  ///< what was cut off longer ago says little of now
constexpr const char* kOrigin = "isolate";      ///< of its measurements

/// Why a test must not disturb this node now; empty: it may.
Async<std::string> whyNotNow(const IsolationServices& services, NodeName name,
                             std::vector<lifecycle::Claim> claims) {
  for (const auto& claim : claims)
    if (!claim.ours && claim.subject == lifecycle::Subject(name))
      co_return claim.holder + " works on it";
  if (services.cluster.profileOf(*services.cluster.findNode(name)).pool.empty())
    co_return std::string();
  const auto seen = co_await services.observe_pool(lifecycle::Subject(name));
  std::optional<lifecycle::Fact> pool;
  for (const auto& fact : seen.value_or(std::vector<lifecycle::Fact>{}))
    if (fact.facet.str() == lifecycle::kPoolFacet) pool = fact;
  co_return whyNotDisturb(services.cluster, name, pool);
}

/// Whether the installed system of each of them has called within the time that agents take to
/// return.
Async<std::set<NodeName>> connectedNodes(const IsolationServices& services,
                                         std::vector<NodeName> nodes) {
  auto& clock = services.clock;
  const auto until = clock.steady() + limitHere(clock, kAgentReconnectTimeout);
  std::set<NodeName> out;
  for (const auto& name : nodes) {
    if (const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - clock.steady());
        left.count() > 0) {
      (void)co_await services.agents.waitFor(name, wire::Mode::Disk, "", left);
    }
    if (const auto agent = services.agents.state(name); agent && agent->mode == wire::Mode::Disk)
      out.insert(name);
  }
  co_return out;
}

/// Nodes that a test may disturb now: all of them, or those that are not left out, and it is said
/// why.
Async<std::vector<NodeName>> disturbableNodes(const IsolationServices& services,
                                              std::vector<NodeName> named, bool may_leave_out) {
  if (named.empty()) named = nodesOfFabrics(services.cluster);
  CO_TRY(there, co_await connectedNodes(services, named));
  CO_TRY(claims, services.store.claims());
  std::vector<NodeName> out;
  for (const auto& name : named) {
    std::string why = "its installed system does not call";
    if (there.contains(name)) {
      CO_TRY(answer, co_await whyNotNow(services, name, claims));
      why = answer;
    }
    if (why.empty())
      out.push_back(name);
    else if (!may_leave_out)
      co_return fail(ErrorCode::Conflict,
                     fmt::format("{}: {}; nothing was tested", name.str(), why));
    else
      services.notice(fmt::format("left out: {}: {}", name.str(), why));
  }
  co_return out;
}

lifecycle::Subject subjectOf(const isolate::Site& site, const isolate::Culprit& culprit) {
  const bool of_node =
      culprit.kind == isolate::CulpritKind::Node || culprit.kind == isolate::CulpritKind::Nic;
  return of_node ? lifecycle::Subject(site.nodes[static_cast<std::size_t>(culprit.a)].name)
                 : lifecycle::Subject::cluster();
}

/// A node's culprits share its facet; what belongs to no node has one of its own:
/// "isolation.uplinks-of-leaf-su2-r1".
FacetName facetOf(const isolate::Site& site, const isolate::Culprit& culprit) {
  std::string name(kIsolationFacet);
  if (!subjectOf(site, culprit).isCluster()) return FacetName(name);
  name += '.';
  for (const char letter : isolate::tell(site, culprit).subject)
    name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '-';
  return FacetName(name);
}

/// What refutes a finding. A fault that is always there is refuted by good tests, one that comes
/// and goes by being cleared alone.
struct Refuted {
  std::set<std::string> cleared, good;

  bool by(const std::string& node, bool comes_and_goes) const {
    return cleared.contains(node) || (!comes_and_goes && good.contains(node));
  }
};

/// Whether a finding is of a fault that comes and goes: of those before 0362 it is not known.
bool comesAndGoes(const nlohmann::json& evidence) {
  return !evidence.is_object() || evidence.value("bad", 1) > 0;
}

/// A finding of the cluster is over when all nodes that it was seen on were tested again and are
/// not what it says.
Result<void> clearShared(lifecycle::Store& store, const Refuted& refuted) {
  const auto cluster = lifecycle::Subject::cluster();
  TRY(open, store.findings(&cluster));
  for (const auto& finding : open) {
    if (!finding.facet.facet.str().starts_with(std::string(kIsolationFacet) + ".")) continue;
    const auto evidence = jsonOrNone(finding.evidence, kKeptJson);
    const auto nodes = evidence.is_object() ? evidence.value("nodes", std::vector<std::string>{})
                                            : std::vector<std::string>{};
    if (!nodes.empty() && std::all_of(nodes.begin(), nodes.end(), [&](const auto& node) {
          return refuted.by(node, comesAndGoes(evidence));
        }))
      TRY_OK(store.clearFindings(finding.facet));
  }
  return {};
}

/// The same of a node's own.
Result<void> clearOwn(lifecycle::Store& store, const NodeName& node, const Refuted& refuted) {
  const lifecycle::Subject subject(node);
  TRY(open, store.findings(&subject));
  for (const auto& finding : open)
    if (finding.facet.facet.str() == kIsolationFacet &&
        refuted.by(node.str(), comesAndGoes(jsonOrNone(finding.evidence, kKeptJson))))
      TRY_OK(store.clearFindings(finding.facet));
  return {};
}

/// Each culprit is a finding, of its node or of the cluster, until a later isolation clears what it
/// was seen on.
Result<void> raiseFindings(const IsolationServices& services, const isolate::IsolationRun& done) {
  const auto& site = done.begun.site;
  auto& store = services.store;
  Refuted refuted;
  const auto nameOf = [&site](int node) { return site.nodes[static_cast<std::size_t>(node)].name; };
  for (const int node : done.verdict.cleared) refuted.cleared.insert(nameOf(node).str());
  for (const int node : done.verdict.good) refuted.good.insert(nameOf(node).str());
  for (const auto* nodes : {&done.verdict.cleared, &done.verdict.good})
    for (const int node : *nodes) TRY_OK(clearOwn(store, nameOf(node), refuted));
  TRY_OK(clearShared(store, refuted));
  std::set<lifecycle::FacetRef> begun;  // what was found before is told anew, once
  for (const auto& culprit : done.verdict.culprits) {
    const auto told = isolate::tell(site, culprit);
    const lifecycle::FacetRef facet{subjectOf(site, culprit), facetOf(site, culprit)};
    if (begun.insert(facet).second) TRY_OK(store.clearFindings(facet));
    std::set<std::string> nodes;
    for (const auto& [a, b] : culprit.seen)
      nodes.insert(site.nodes[static_cast<std::size_t>(a)].name.str()),
          nodes.insert(site.nodes[static_cast<std::size_t>(b)].name.str());
    TRY_OK(store.addFinding({facet, Severity::Error,
                             fmt::format("{}: {} (confidence {:.2f} %)", told.subject, told.what,
                                         100 * culprit.confidence),
                             jsonText(nlohmann::json{{"fresh_tests", culprit.tests},
                                                     {"bad", culprit.bad},
                                                     {"reached", culprit.reached},
                                                     {"nodes", nodes},
                                                     {"run", done.begun.run_id}}),
                             told.next, services.clock.now(), lifecycle::kIsolationSource}));
  }
  return {};
}

/// Once for each isolation, however often it is kept.
Result<void> storeMeasurements(const IsolationServices& services,
                               const isolate::IsolationRun& done) {
  const auto at = done.begun.at;
  TRY(known, services.measurements.since(at));
  for (const auto& set : known)
    if (set.at == at && set.origin == kOrigin) return {};
  const auto& site = done.begun.site;
  std::vector<lifecycle::MeasuredSet> sets;
  for (std::size_t n = 0; n < site.nodes.size(); ++n) {
    const auto* node = services.cluster.findNode(site.nodes[n].name);
    if (!node) continue;  // declared away while it was tested
    sets.push_back({at,
                    node->name,
                    kOrigin,
                    validate::skuOf(services.cluster, *node, services.agents),
                    node->rack,
                    {}});
    for (int rail = 0; rail < site.layout.rails; ++rail)
      if (const auto best = done.best.find({static_cast<int>(n), rail}); best != done.best.end())
        sets.back().numbers[fmt::format(
            "isolate/{}_gbits@{}",
            done.begun.engine.kind == isolate::EngineKind::Rdma ? "pair"
                                                                : toString(done.begun.engine.kind),
            site.nodes[n].devices[static_cast<std::size_t>(rail)])] = best->second;
  }
  return services.measurements.add(sets);
}

/// What this very wish has begun and not ended, when it may go on.
Async<std::optional<isolate::Begun>> interruptedRun(const IsolationServices& services,
                                                    isolate::RunLog& log) {
  CO_TRY(begun, log.begun());
  if (!begun) co_return std::nullopt;
  std::string why;
  if (services.clock.now() - begun->at > kResumeWindow) why = "it is too long ago";
  CO_TRY(claims, services.store.claims());
  std::vector<NodeName> nodes;
  for (const auto& node : begun->site.nodes) {
    nodes.push_back(node.name);
    if (!why.empty()) continue;
    if (!services.cluster.findNode(node.name)) {
      why = node.name.str() + " is in the inventory no more";
      continue;
    }
    CO_TRY(disturbed, co_await whyNotNow(services, node.name, claims));
    if (!disturbed.empty()) why = fmt::format("{}: {}", node.name.str(), disturbed);
  }
  if (!why.empty()) {
    services.notice(fmt::format("the isolation of {} was interrupted and does not go on: {}",
                                toString(begun->at), why));
    CO_TRY_OK(log.remove());
    co_return std::nullopt;
  }
  services.notice(fmt::format("goes on with the isolation of {}", toString(begun->at)));
  auto waiting = connectedNodes(services, nodes);  // who does not come fails its tests
  CO_TRY_OK(co_await std::move(waiting));
  co_return std::move(begun);
}

/// Without routes a bad way is told by its leaf's uplinks instead of its cable: less exact, and no
/// reason not to test.
Async<void> addRoutes(const IsolationServices& services, isolate::Site& site) {
  if (site.link.empty() || !services.routes) co_return Result<void>();
  auto routes = co_await services.routes(site);
  if (routes)
    useRoutes(site, std::move(*routes));
  else
    services.notice(fmt::format("single cables cannot be told apart: {}", routes.error().str()));
  co_return Result<void>();
}

Async<isolate::Begun> beginRun(const IsolationServices& services, IsolationWish wish) {
  const auto& request = wish.request;
  CO_TRY(nodes, co_await disturbableNodes(services, wish.nodes, wish.may_leave_out));
  isolate::Begun begun;
  begun.run_id = wish.run_id + "-" + io::randomToken(8);
  begun.at = services.clock.now();
  begun.seed =
      request.seed ? request.seed : static_cast<std::uint64_t>(begun.at.time_since_epoch().count());
  CO_TRY(engine,
         co_await isolate::chooseEngine(request.engine, nodes, services.agents, begun.run_id));
  begun.engine = engine;
  CO_TRY(site, isolate::siteOf(services.cluster, nodes, services.agents, engine));
  begun.site = std::move(site);
  if (engine.kind != isolate::EngineKind::Tcp) {
    CO_TRY_OK(co_await addRoutes(services, begun.site));
  }
  begun.least_gbits =
      request.min_gbps ? request.min_gbps : isolate::leastGbitsOf(begun.site, engine.kind);
  begun.until = isolate::proofOf(request.until).value_or(isolate::Proof::Cleared);
  co_return std::move(begun);
}

}  // namespace

Async<isolate::IsolationRun> isolateNodes(IsolationServices services, IsolationWish wish) {
  IsolationLogCopy copy(services.store, wish.log);
  isolate::RunLog log(services.folder / wish.log, wish.is_shared ? &copy : nullptr);
  CO_TRY_OK(io::makeDirs(services.folder, kStateFolderMode));
  CO_TRY_OK(log.fetch());
  CO_TRY(begun, co_await interruptedRun(services, log));
  if (!begun) {
    auto made = co_await beginRun(services, std::move(wish));
    if (!made)  // tried again, it would hold up whatever is asked for behind it
      co_return fail(std::move(made).error().retryable(false).within("nothing was tested"));
    CO_TRY_OK(log.begin(*made));
    begun = std::move(*made);
  }
  const isolate::RoundBegins tell = [&services](const isolate::Round& round) {
    services.notice(
        fmt::format("round {}: {} ({} tests)", round.number, round.what, round.groups.size()));
  };
  co_return co_await isolate::runIsolation(std::move(*begun), log, services.agents, tell);
}

/// The document first: its name follows from the run, so that it is written once however often this
/// is done.
Result<std::filesystem::path> keepIsolation(const IsolationServices& services,
                                            const isolate::IsolationRun& done) {
  auto file =
      services.folder / fmt::format("isolate-{}.json", done.begun.at.time_since_epoch().count());
  TRY_OK(io::makeDirs(file.parent_path(), kStateFolderMode));
  TRY_OK(io::writeFileAtomic(file, jsonText(toJson(done), 1), kStateFileMode));
  TRY_OK(raiseFindings(services, done));
  TRY_OK(storeMeasurements(services, done));
  return file;
}

Result<void> forgetIsolation(const std::filesystem::path& folder, const std::string& log) {
  return isolate::RunLog(folder / log).remove();
}

Result<void> forgetIsolation(const IsolationServices& services, const std::string& log) {
  IsolationLogCopy copy(services.store, log);
  return isolate::RunLog(services.folder / log, &copy).remove();
}

}  // namespace muster::app
