// validate: what is measured between nodes, and what comes of it.
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "validate/gates.h"
#include "validate/isolate/runner.h"
#include "validate/pair_partner.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

namespace isolate = validate::isolate;

constexpr std::chrono::seconds kAgentsReturn{45};  ///< agents dial again so long after a controller's start
constexpr std::string_view kFacet = "isolation";

/// Nodes that a test may disturb now. Those that were named must all be; of the others some may be left out, and it is said why.
Async<std::vector<NodeName>> undisturbed(Session& session, std::vector<NodeName> named) {
  const bool all = named.empty();
  auto& controller = *session.controller;
  if (all)
    for (const auto& node : session.cluster().nodes)
      if (!session.cluster().profileOf(node).fabric.empty()) named.push_back(node.name);
  const auto until = controller.clock().steady() + kAgentsReturn;
  CO_TRY(claims, controller.store().claims());
  std::vector<NodeName> out;
  for (const auto& name : named) {
    std::string why;
    if (const auto left = std::chrono::duration_cast<std::chrono::seconds>(until - controller.clock().steady()); left.count() > 0) {
      auto waiting = controller.agents().waitFor(name, agent::Mode::Disk, "", left);
      (void)co_await std::move(waiting);
    }
    if (const auto agent = controller.agents().state(name); !agent || agent->mode != agent::Mode::Disk) why = "its installed system does not call";
    for (const auto& claim : claims)
      if (!claim.ours && claim.subject == lifecycle::Subject(name)) why = claim.holder + " works on it";
    if (why.empty() && !session.cluster().profileOf(*session.cluster().findNode(name)).pool.empty()) {
      auto looking = controller.lookAtPool(lifecycle::Subject(name));
      const auto seen = co_await std::move(looking);
      std::optional<lifecycle::Fact> pool;
      for (const auto& fact : seen.value_or(std::vector<lifecycle::Fact>{}))
        if (fact.facet.str() == lifecycle::kPoolFacet) pool = fact;
      why = validate::whyNotDisturb(name, pool);
    }
    if (why.empty())
      out.push_back(name);
    else if (!all)
      co_return fail(ErrorCode::Conflict, fmt::format("{}: {}; nothing was tested", name.str(), why));
    else
      std::cerr << fmt::format("left out: {}: {}\n", name.str(), why);
  }
  co_return out;
}

/// What was planned and measured, round by round.
nlohmann::json evidenceOf(const isolate::Site& site, const isolate::Round& round, const isolate::RoundResult& result, const isolate::PairRunner& runner) {
  nlohmann::json tests = nlohmann::json::array();
  for (std::size_t g = 0; g < round.groups.size(); ++g)
    for (int rail = 0; rail < site.layout.rails; ++rail) {
      const auto& members = round.groups[g].members;
      const double rate = result[g].rail_gbits[static_cast<std::size_t>(rail)];
      const auto said = runner.said().find({g, rail});
      tests.push_back({{"a", site.nodes[static_cast<std::size_t>(members[0])].name.str()}, {"b", site.nodes[static_cast<std::size_t>(members[1])].name.str()}, {"rail", rail},
                       {"gbits", std::isfinite(rate) ? nlohmann::json(rate) : nlohmann::json()}, {"said", said == runner.said().end() ? "" : said->second}});
    }
  return {{"number", round.number}, {"stage", toString(round.stage)}, {"what", round.what}, {"tests", std::move(tests)}};
}

/// A culprit that is a node, or a part of one, is a finding of it until a later isolation clears it.
Result<void> raiseFindings(Controller& controller, const isolate::Site& site, const isolate::Verdict& verdict) {
  for (const int node : verdict.cleared)
    TRY_OK(controller.store().clearFindings({lifecycle::Subject(site.nodes[static_cast<std::size_t>(node)].name), FacetName(std::string(kFacet))}));
  for (const auto& culprit : verdict.culprits) {
    if (culprit.kind != isolate::CulpritKind::Node && culprit.kind != isolate::CulpritKind::Nic) continue;
    const auto told = isolate::tell(site, culprit);
    const lifecycle::FacetRef facet{lifecycle::Subject(site.nodes[static_cast<std::size_t>(culprit.a)].name), FacetName(std::string(kFacet))};
    TRY_OK(controller.store().clearFindings(facet));
    TRY_OK(controller.store().addFinding({facet, Severity::Error, fmt::format("{}: {} (confidence {:.2f} %)", told.subject, told.what, 100 * culprit.confidence),
                                          nlohmann::json{{"fresh_tests", culprit.tests}, {"reached", culprit.reached}}.dump(), told.next, controller.clock().now()}));
  }
  return {};
}

struct Isolated {
  isolate::Site site;
  isolate::Verdict verdict;
  nlohmann::json rounds = nlohmann::json::array();
  std::map<std::pair<int, int>, double> best;  ///< (node, rail) → Gb/s: what it can do
  std::uint64_t seed = 0;
};

void noteBest(Isolated& out, const isolate::Round& round, const isolate::RoundResult& result) {
  for (std::size_t g = 0; g < round.groups.size(); ++g)
    for (int rail = 0; rail < out.site.layout.rails; ++rail)
      if (const double rate = result[g].rail_gbits[static_cast<std::size_t>(rail)]; std::isfinite(rate))
        for (const int node : round.groups[g].members) {
          auto& best = out.best[{node, rail}];
          best = std::max(best, rate);
        }
}

Result<void> keepMeasurements(Session& session, const Isolated& done) {
  std::vector<lifecycle::MeasuredSet> sets;
  for (std::size_t n = 0; n < done.site.nodes.size(); ++n) {
    const auto& node = *session.cluster().findNode(done.site.nodes[n].name);
    sets.push_back({session.controller->clock().now(), node.name, "isolate", validate::skuOf(session.cluster(), node, session.controller->agents()), node.rack, {}});
    for (int rail = 0; rail < done.site.layout.rails; ++rail)
      if (const auto best = done.best.find({static_cast<int>(n), rail}); best != done.best.end())
        sets.back().numbers["isolate/pair_gbits@" + done.site.nodes[n].devices[static_cast<std::size_t>(rail)]] = best->second;
  }
  return session.controller->measurements().add(sets);
}

Async<Isolated> runIsolation(Session& session, ValidateFlags flags, std::vector<NodeName> named) {
  auto choosing = undisturbed(session, std::move(named));
  CO_TRY(nodes, co_await std::move(choosing));
  CO_TRY(site, isolate::siteOf(session.cluster(), nodes, session.controller->agents()));
  Isolated out;
  out.site = std::move(site);
  const auto started = session.controller->clock().now();
  out.seed = flags.seed ? flags.seed : static_cast<std::uint64_t>(started.time_since_epoch().count());
  isolate::PairRunner runner(out.site, session.controller->agents(), "isolate-" + io::randomToken(8));
  const auto least = flags.least_gbits.value_or(validate::rdmaFloorGbits(out.site.nodes.front().devices.front(), out.site.link));
  isolate::Isolation isolation(out.site.layout, {.groups = runner.runsGroups(), .least_gbits = least, .seed = out.seed});
  const isolate::RoundSink sink = [&out, &runner](const isolate::Round& round, const isolate::RoundResult* result) {
    if (!result) {
      std::cerr << fmt::format("round {}: {} ({} tests)\n", round.number, round.what, round.groups.size());
      return;
    }
    noteBest(out, round, *result);
    out.rounds.push_back(evidenceOf(out.site, round, *result, runner));
  };
  auto running = isolate::isolateBy(isolation, runner, sink);
  out.verdict = co_await std::move(running);
  CO_TRY_OK(raiseFindings(*session.controller, out.site, out.verdict));
  CO_TRY_OK(keepMeasurements(session, out));
  co_return std::move(out);
}

}  // namespace

int validateIsolate(const Options& options, const ValidateFlags& flags) {
  auto live = liveCluster(options);
  if (!live) return report(live.error());
  auto session = Session::open(options, std::move(*live), Role::Looks, true);
  if (!session) return report(session.error());
  const auto named = selectedNodes((*session)->cluster(), flags.nodes);
  if (!named) return report(named.error());
  auto done = (*session)->controller->run(runIsolation(**session, flags, *named));
  if (!done) return report(done.error());
  auto document = toJson(done->site, done->verdict);
  document["seed"] = done->seed;
  std::cout << (options.json ? document.dump(2) + "\n" : toText(done->site, done->verdict));
  document["rounds_run"] = std::move(done->rounds);
  const auto file = options.state / "validation" / fmt::format("isolate-{}.json", (*session)->controller->clock().now().time_since_epoch().count());
  if (const auto made = io::makeDirs(file.parent_path()); !made) return report(made.error());
  if (const auto kept = io::writeFileAtomic(file, document.dump(1)); !kept) return report(kept.error());
  std::cerr << "every test is in " << file.string() << '\n';
  return done->verdict.culprits.empty() && done->verdict.unclear.empty() ? kOk : kFailed;
}

}  // namespace muster::cli
