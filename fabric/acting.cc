// SPDX-License-Identifier: Apache-2.0
#include "fabric/acting.h"

#include "base/json_output.h"
#include "base/limits.h"
#include "fabric/compare/compare.h"
#include "fabric/topology/topology.h"

#include <algorithm>

namespace muster::fabric {

using lifecycle::ActContext;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::FacetRef;
using lifecycle::Finding;
using lifecycle::Outcome;

namespace {

constexpr std::chrono::milliseconds kPoll{100};
constexpr std::chrono::seconds kPartitionsSettle{15};
constexpr std::string_view kExternalHelp =
    "the subnet manager is not muster's (the fabric declares no subnet_managers): change it there "
    "(UFM, or the switch), then apply again";

/// How long tables may still say the former: until a sweep has ended after the change, and as long
/// again (it may have begun before). The sweep of a large fabric takes most of a minute.
class SweepLimit {
 public:
  /// Made before the change.
  SweepLimit(Clock& clock, const SubnetManager& manager)
      : clock_(clock),
        manager_(manager),
        sweeps_(manager.log().sweeps),
        began_(clock.steady()),
        until_(began_ + limitHere(clock, kSmSettle)) {}
  bool isOver() {
    const auto now = clock_.steady();
    if (!swept_ && manager_.log().sweeps != sweeps_) {
      swept_ = true;
      until_ = now + std::max<std::chrono::steady_clock::duration>(
                         limitHere(clock_, kPartitionsSettle), now - began_);
    }
    return now >= until_;
  }

 private:
  Clock& clock_;
  const SubnetManager& manager_;
  const std::size_t sweeps_;
  const std::chrono::steady_clock::time_point began_;
  std::chrono::steady_clock::time_point until_;
  bool swept_ = false;
};

Finding findingOf(const FacetRef& facet, const Deviation& one, WallTime at) {
  bool extra = one.kind == DeviationKind::ExtraLink || one.kind == DeviationKind::ExtraNode;
  auto place = one.at.number ? fmt::format("{} port {}", one.at.node, one.at.number) : one.at.node;
  nlohmann::json evidence = {{"kind", toString(one.kind)},
                             {"device", one.at.node},
                             {"port", one.at.number},
                             {"declared", one.declared},
                             {"found", one.found}};
  return {facet,
          extra ? Severity::Warning : Severity::Error,
          fmt::format("{}: {} (declared: {}; found: {})", toString(one.kind), place, one.declared,
                      one.found),
          jsonText(evidence),
          one.repair,
          at};
}

/// What is rendered is read back before OpenSM sees it: a statement that it cannot read opens the
/// whole fabric.
std::string lint(const Picture& now) {
  auto read = parsePartitions(now.files.partitions);
  if (!read) return read.error().str();
  auto wanted = now.rules;
  std::erase_if(wanted, [](const PartitionRule& rule) {
    return rule.full == Members{} && rule.limited == Members{};
  });  // nobody of it is known yet
  return *read == wanted ? ""
                         : "the rendered partitions.conf differs from the declaration; this is a "
                           "defect of muster, nothing was changed";
}

}  // namespace

Async<Outcome> FabricActing::act(FacetRef facet, ActContext& context) {
  const auto name = baseOf(facet.facet.str());
  if (inspection_.managerIsExternal() && (name == kSm || name == kPartitions)) {
    co_return co_await actExternal(std::move(facet), context);
  }
  if (name == kSm) {
    co_return co_await actSm(std::move(facet), context);
  }
  if (name == kPartitions) {
    co_return co_await actPartitions(std::move(facet), context);
  }
  if (name == kStandby) {
    co_return co_await actStandby(std::move(facet), context);
  }
  co_return co_await actCables(std::move(facet), context);
}

/// A standby is started by its node's agent (NodeServicesPhase, fabric.opensm of that node), or by
/// the node's owner from rendered files. Nothing waits for it, least of all its own node.
Async<Outcome> FabricActing::actStandby(FacetRef facet, ActContext& context) {
  CO_TRY(now, co_await inspection_.picture(std::chrono::milliseconds(0)));
  CO_TRY(problem, co_await inspection_.standbyProblem(*now));
  if (problem.empty()) co_return Done{};
  constexpr std::string_view kHelp =
      "its node's agent starts it (facet fabric.opensm of the node); on a node without one: muster "
      "fabric render --out DIR writes its "
      "files, "
      "copy opensm/NODE to /etc/muster/opensm and start muster-opensm.service";
  context.finding({facet, Severity::Error, problem, {}, std::string(kHelp), clock_.now()});
  co_return Blocked{fmt::format("{}; {}", problem, kHelp)};
}

/// Another's subnet manager is changed by its owner: says what is wrong with it.
Async<Outcome> FabricActing::actExternal(FacetRef facet, ActContext& context) {
  CO_TRY(now, co_await inspection_.picture(std::chrono::milliseconds(0)));
  CO_TRY(problem,
         co_await (baseOf(facet.facet.str()) == kSm ? inspection_.smProblem(*now)
                                                    : inspection_.partitionsProblem(*now)));
  if (problem.empty()) co_return Done{};
  context.finding({facet, Severity::Error, problem, {}, std::string(kExternalHelp), clock_.now()});
  co_return Blocked{fmt::format("{}; {}", problem, kExternalHelp)};
}

Async<Outcome> FabricActing::actSm(FacetRef facet, ActContext& context) {
  context.progress(0.1, "discovering the fabric");
  CO_TRY(now, co_await inspection_.picture(std::chrono::milliseconds(0)));
  if (now->sm_guid.empty())
    co_return Blocked{fmt::format(
        "{} was never seen at its declared port, so the subnet manager has no place: {}",
        inspection_.seat(), repairs(now->deviations))};
  if (!inspection_.noOpensm().empty()) co_return Blocked{inspection_.noOpensm()};
  if (auto wrong = lint(*now); !wrong.empty()) co_return Blocked{wrong};
  if (auto rival = manager_.rival(); !rival.empty()) co_return Blocked{rival};
  if (!manager_.pid() || !manager_.startedWith(now->files)) {
    context.progress(0.3, "starting opensm");
    CO_TRY_OK(manager_.start(now->files));
  } else if (!manager_.nodesAre(now->files)) {
    CO_TRY_OK(manager_.applyNodes(now->files));
  } else if (manager_.log().routing_engine.empty()) {
    CO_TRY_OK(
        manager_
            .hangUp());  // it emptied its log while nobody read: a sweep says anew how it routes
  }
  co_return co_await awaitSm(std::move(facet), now, context);
}

Async<Outcome> FabricActing::awaitSm(FacetRef facet, SharedPicture now, ActContext& context) {
  const auto until = clock_.steady() + limitHere(clock_, kSmSettle);
  std::string problem;
  while (clock_.steady() < until) {
    if (!manager_.pid())
      co_return fail(ErrorCode::Unavailable, "opensm ended: " + manager_.logTail());
    auto log = manager_.log();
    bool settled = log.subnet_up || log.standby;
    CO_TRY(problem_now, co_await inspection_.smProblem(*now));
    problem = problem_now;
    if (problem.empty()) co_return Done{};
    if (settled) break;  // in another state than the declared one
    context.progress(0.6, problem);
    co_await clock_.sleep(kPoll);
  }
  auto help = now->deviations.empty() ? "read " + (manager_.servedFolder() / "opensm.log").string()
                                      : repairs(now->deviations);
  context.finding({facet, Severity::Error, problem, manager_.logTail(), help, clock_.now()});
  co_return Blocked{fmt::format("{}; {}", problem, help)};
}

Async<Outcome> FabricActing::actPartitions(FacetRef facet, ActContext& context) {
  CO_TRY(now, co_await inspection_.picture(std::chrono::milliseconds(0)));
  co_return co_await applyPartitions(std::move(facet), now, context);
}

Async<Outcome> FabricActing::applyPartitions(FacetRef facet, SharedPicture now,
                                             ActContext& context) {
  if (auto wrong = lint(*now); !wrong.empty()) co_return Blocked{wrong};
  if (!manager_.pid())
    co_return fail(ErrorCode::Unavailable, "no subnet manager runs that could set the partitions");
  SweepLimit limit(clock_, manager_);
  CO_TRY_OK(manager_.applyPartitions(now->files));
  context.progress(0.5, "reading the PKey tables back");
  std::string problem;
  while (!limit.isOver()) {
    now->wrong_pkeys.reset();
    CO_TRY(problem_now, co_await inspection_.partitionsProblem(*now));
    problem = problem_now;
    if (problem.empty()) co_return Done{};
    co_await clock_.sleep(kPoll);
  }
  // Refused, or read otherwise than we do: whoever may talk to more than declared is worth more
  // than the change. What was in force before this change proves nothing, somebody may have opened
  // it; and where these very partitions were proven, the file is not what is wrong.
  const bool opened =
      now->wrong_pkeys && std::any_of(now->wrong_pkeys->begin(), now->wrong_pkeys->end(),
                                      [](const auto& one) { return one.is_wider; });
  std::string back;
  if ((opened || manager_.log().partitions_refused) && !manager_.provenPartitionsAre(now->files)) {
    context.progress(0.8, "restoring the previous partitions");
    CO_TRY(said, co_await rollBack(now));
    back = "; " + said;
  }
  context.finding({facet, Severity::Error, problem + back, manager_.logTail(),
                   fmt::format("compare partitions.conf in {} with opensm.log there",
                               manager_.servedFolder().string()),
                   clock_.now()});
  co_return Blocked{problem + back};
}

Async<std::string> FabricActing::rollBack(SharedPicture now) {
  SweepLimit limit(clock_, manager_);
  auto former = manager_.rollBackPartitions();
  if (!former)
    co_return fmt::format(
        "no verified partitions exist to restore ({}): stop opensm on the controller if the fabric "
        "is too open now",
        former.error().str());
  auto before = *now;
  before.rules = std::move(*former);
  std::vector<PkeyMismatch> wrong;
  while (!limit.isOver()) {
    CO_TRY(tables, co_await inspection_.readPkeys(before, {}));
    wrong = std::move(tables);
    if (wrong.empty())
      co_return "the previous partitions are active again; every table was verified";
    co_await clock_.sleep(kPoll);
  }
  co_return fmt::format(
      "the previous partitions.conf was restored, but {} tables differ from it: {}", wrong.size(),
      wrong.front().str());
}

/// Cables are moved by people: says which. What muster can do for a node with the right cables is
/// to give its ports their partitions: a HCA that came up after the partitions were set is a member
/// only from now on.
Async<Outcome> FabricActing::actCables(FacetRef facet, ActContext& context) {
  CO_TRY(now, co_await inspection_.picture(std::chrono::milliseconds(0)));
  auto wrong = facet.subject.isCluster() ? now->deviations
                                         : inspection_.deviationsOf(facet.subject.node(), *now);
  for (const auto& one : wrong) context.finding(findingOf(facet, one, clock_.now()));
  if (!wrong.empty()) co_return Blocked{repairs(wrong)};
  if (facet.subject.isCluster()) co_return Done{};
  CO_TRY(problem, co_await inspection_.portsProblem(facet.subject.node(), *now));
  if (problem.empty()) co_return Done{};
  if (inspection_.managerIsExternal())
    co_return Blocked{fmt::format("{}; {}", problem, kExternalHelp)};
  co_return co_await applyPartitions(std::move(facet), now, context);
}

}  // namespace muster::fabric
