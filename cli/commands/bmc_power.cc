// SPDX-License-Identifier: Apache-2.0
// bmc power, bmc boot: a person's hand on one machine. What takes something away is shown first and
// done only with the node's name once more.
#include "app/state_folder.h"
#include "bmc/readiness.h"
#include "cli/commands/commands.h"
#include "cli/session.h"
#include "lifecycle/store/store.h"

#include <iostream>

namespace muster::cli {
namespace {

using lifecycle::Subject;

constexpr std::chrono::minutes kBackLimit{
    10};  ///< until a BMC answers again that has its power back
constexpr std::chrono::seconds kPresencePoll{2};

struct PowerVerb {
  std::string_view word;
  std::optional<bmc::PowerAction> action;  ///< nullopt: by its word
  bool takes_away = true;
  std::string_view means;
};
constexpr PowerVerb kVerbs[] = {
    {"on", bmc::PowerAction::On, false, "is switched on"},
    {"shutdown", bmc::PowerAction::GracefulShutdown, true, "is asked to shut down"},
    {"off", bmc::PowerAction::ForceOff, true, "loses its power at once"},
    {"restart", bmc::PowerAction::ForceRestart, true, "loses its power at once and gets it again"},
    {"ac-cycle", std::nullopt, true, "loses standby power too, for minutes: its BMC goes with it"},
    {"nmi", std::nullopt, true,
     "gets a non-maskable interrupt: its system writes a crash dump, or stops"},
    {"reset", std::nullopt, true, "keeps running; its BMC restarts"}};

/// The turn of the state folder, and the BMCs; no server is started and no node is observed.
struct Desk {
  app::Turn turn;
  std::unique_ptr<Session> session;
};

Result<Desk> openDesk(const app::Options& options) {
  TRY(live, liveCluster(options));
  TRY_OK(app::prepareStateFolder(options.state));
  TRY(turn, app::takeTurn(options.state));
  TRY(store, lifecycle::openStore(
                 options.storeUrl()));  // the first command of a new state folder may be this one
  store.reset();
  TRY(session, Session::openStored(options, std::move(live)));
  if (session->lab) TRY_OK(lab::enter(*session->lab));
  return Desk{std::move(turn), std::move(session)};
}

std::string powerWord(bmc::PowerState power) {
  return power == bmc::PowerState::On ? "on" : power == bmc::PowerState::Off ? "off" : "unknown";
}

/// Why nobody should touch it now; empty: nothing is known against it.
Result<std::string> whyNot(lifecycle::Store& store, const NodeName& node, const BmcFlags& flags) {
  const Subject subject(node);
  TRY(open, store.openIntents());
  for (const auto& intent : open)
    if (intent.action.facet.subject == subject)
      return fmt::format(
          "{} is under way on it{}; let it end: muster apply --nodes {}", intent.action.id,
          intent.operation.empty() ? "" : " (" + intent.operation.substr(0, 80) + ")", node.str());
  TRY(claims, store.claims());
  for (const auto& claim : claims)
    if (claim.subject == subject && !claim.ours) return fmt::format("{} works on it", claim.holder);
  TRY(facts, store.factsOf(subject));
  for (const auto& fact : facts)
    if (fact.facet.str() == lifecycle::kPoolFacet && lifecycle::mayTakeJobs(fact.value) &&
        !flags.even_in_pool)
      return fmt::format(
          "it may be running jobs (pool: {}); drain it first: muster quarantine hold {} --reason "
          "…, or say --even-in-pool",
          fact.value, node.str());
  return std::string();
}

Result<void> note(Desk& desk, const NodeName& node, std::string text) {
  lifecycle::Event event;
  event.at = desk.session->controller->clock().now();
  event.subject = Subject(node);
  event.text = fmt::format("{}: {}", app::actorText(), std::move(text));
  TRY(sequence, desk.session->controller->store().addEvent(event));
  (void)sequence;
  return {};
}

std::string cutKey(const NodeName& node) { return "bmc.cut." + node.str(); }

/// A muster that ended between off and on left the outlets off: the BMC is silent until they are
/// switched on.
Result<void> giveBack(Desk& desk, const NodeName& node, bool by_ipmi) {
  auto& controller = *desk.session->controller;
  TRY(mark, controller.store().getValue(cutKey(node)));
  if (!mark || mark->empty()) return {};
  TRY(cut_at, parseWallTime(*mark));
  auto& bmc = controller.bmcs().at(node);
  const auto seen = controller.run(bmc.system());
  if (!seen && !seen.error().canRetry()) return {};
  if (!seen) {
    std::cerr << fmt::format(
        "{}: its standby power was cut at {} and nobody gave it back; giving it back, and waiting "
        "for its BMC\n",
        node.str(), *mark);
    TRY_OK(note(desk, node, "gives back the standby power that was cut at " + *mark));
    TRY_OK(controller.run(bmc.restorePower(cut_at)));
    if (by_ipmi) return {};  // its Redfish may stay silent for another reason
    TRY_OK(controller.run(
        bmc::waitUntilReady(bmc, controller.clock(), {kBackLimit, kPresencePoll, true})));
  }
  return controller.store().putValue(cutKey(node), "");
}

/// Firmware that is being written forbids every cut, a second slot that is being filled too. A BMC
/// that does not answer may be writing; one that lists its tasks but not its inventory (DGX H100,
/// while the host is off) is believed.
Result<void> refuseUnderFlash(app::Controller& controller, bmc::Bmc& redfish, bool by_ipmi) {
  const auto tasks = controller.run(redfish.tasks());
  if (tasks && !tasks->running.empty())
    return fail(ErrorCode::Conflict,
                fmt::format("the BMC is busy with {}; power must not be cut under a flash",
                            tasks->running.front()));
  if (!tasks && by_ipmi) return {};
  if (!tasks && tasks.error().code() != ErrorCode::NotFound)
    return fail(
        tasks.error().code(),
        tasks.error().text() +
            "; whether it writes firmware is not known. When you know that it does not: --ipmi");
  const auto items = controller.run(redfish.firmware()).value_or(std::vector<bmc::FirmwareItem>());
  for (const auto& item : items)
    if (item.being_written)
      return fail(
          ErrorCode::Conflict,
          fmt::format("the BMC writes an image of {} now; power must not be cut under a flash",
                      item.name));
  const auto copies =
      controller.run(redfish.backgroundCopies()).value_or(std::vector<bmc::BackgroundCopy>());
  for (const auto& copy : copies)
    if (copy.running)
      return fail(ErrorCode::Conflict, fmt::format("the second slot of {} is being filled ({}); "
                                                   "its power must stay until that has ended",
                                                   copy.name, copy.status));
  return {};
}

Async<void> carryOut(bmc::Bmc& bmc, const PowerVerb& verb) {
  if (verb.action) return bmc.power(*verb.action);
  return verb.word == "ac-cycle" ? bmc.acCycle()
         : verb.word == "nmi"    ? bmc.sendNmi()
                                 : bmc.resetBmc();
}

Result<bmc::Bmc*> bmcOf(Desk& desk, const NodeName& node, bool ipmi) {
  auto& fleet = desk.session->controller->bmcs();
  if (!ipmi) return &fleet.at(node);
  if (auto* found = fleet.ipmiOf(node)) return found;
  return fail(ErrorCode::NotFound,
              fmt::format("no IPMI is declared for {}; add ipmi: {{}} to its profile", node.str()));
}

Result<int> power(Desk& desk, const NodeName& node, const PowerVerb& verb, const BmcFlags& flags) {
  auto& controller = *desk.session->controller;
  TRY(bmc, bmcOf(desk, node, flags.ipmi));
  TRY(why, verb.takes_away ? whyNot(controller.store(), node, flags)
                           : Result<std::string>(std::string()));
  if (!why.empty()) return fail(ErrorCode::Conflict, why + "; nothing was done");
  const bool cuts = verb.word == "ac-cycle";
  if (verb.word == "on" || (cuts && !flags.confirm.empty()))
    TRY_OK(giveBack(desk, node, flags.ipmi));
  if (verb.takes_away) TRY_OK(refuseUnderFlash(controller, controller.bmcs().at(node), flags.ipmi));
  TRY(before, controller.run(bmc->system()));
  if (verb.takes_away && flags.confirm.empty()) {
    std::cout << fmt::format(
        "{} ({}): power is {}; it {}.\nNothing was done. To do it: muster bmc power {} {}{}{} "
        "--reason … --confirm {}\n",
        node.str(), bmc->address(), powerWord(before.power), verb.means, node.str(), verb.word,
        flags.ipmi ? " --ipmi" : "", flags.even_in_pool ? " --even-in-pool" : "", node.str());
    return int{kOk};
  }
  TRY_OK(note(desk, node,
              fmt::format("bmc power {}{}: {}", verb.word, flags.ipmi ? " by IPMI" : "",
                          flags.reason.empty() ? "no reason given" : flags.reason)));
  if (cuts) TRY_OK(controller.store().putValue(cutKey(node), toString(controller.clock().now())));
  const auto done = controller.run(carryOut(*bmc, verb));
  const auto after = controller.run(bmc->system());
  if (cuts && (done || after)) TRY_OK(controller.store().putValue(cutKey(node), ""));
  (void)controller.run(controller.bmcs().close());
  if (!done) return fail(done.error());
  std::cout << fmt::format("{}: power was {}, is {}\n", node.str(), powerWord(before.power),
                           after ? powerWord(after->power) : after.error().str());
  return int{kOk};
}

Result<int> boot(Desk& desk, const NodeName& node, const BmcFlags& flags) {
  auto& controller = *desk.session->controller;
  bmc::BootOverride what;
  what.target = flags.what == "pxe"    ? bmc::BootTarget::Pxe
                : flags.what == "disk" ? bmc::BootTarget::Disk
                : flags.what == "http" ? bmc::BootTarget::UefiHttp
                                       : bmc::BootTarget::None;
  what.persistent = flags.persistent;
  what.http_uri = flags.uri;
  TRY_OK(note(desk, node,
              fmt::format("bmc boot {}{} {}", flags.what, flags.persistent ? " for all boots" : "",
                          flags.uri)));
  const auto done = controller.run(controller.bmcs().at(node).boot(std::move(what)));
  (void)controller.run(controller.bmcs().close());
  if (!done) return fail(done.error());
  std::cout << fmt::format(
      "{} boots from {} {}\n", node.str(),
      flags.what == "none" ? "what its own order says," : flags.what,
      flags.persistent || flags.what == "none" ? "from now on" : "the next time");
  return int{kOk};
}

int refuse(std::string why) {
  return report(Error(ErrorCode::InvalidInput, std::move(why) + "; nothing was done"));
}

template <class Work>
int atDesk(const app::Options& options, const std::string& node, Work work) {
  auto desk = openDesk(options);
  if (!desk) return report(desk.error());
  if (!desk->session->cluster().findNode(NodeName(node)))
    return report(Error(ErrorCode::NotFound,
                        fmt::format("node {} is not in the inventory; nothing was done", node)));
  const auto code = work(*desk);
  return code ? *code : report(code.error());
}

}  // namespace

int bmcPower(const app::Options& options, const BmcFlags& flags) {
  const auto* verb = std::find_if(std::begin(kVerbs), std::end(kVerbs),
                                  [&](const PowerVerb& each) { return each.word == flags.what; });
  if (verb == std::end(kVerbs)) return refuse(fmt::format("\"{}\" is no action", flags.what));
  if (!flags.confirm.empty() && flags.confirm != flags.node)
    return refuse(
        fmt::format("--confirm {} is not the name of the node, {}", flags.confirm, flags.node));
  if (verb->takes_away && !flags.confirm.empty() && flags.reason.empty())
    return refuse("--reason is missing; it is kept in the log");
  return atDesk(options, flags.node,
                [&](Desk& desk) { return power(desk, NodeName(flags.node), *verb, flags); });
}

int bmcBoot(const app::Options& options, const BmcFlags& flags) {
  if (!flags.uri.empty() && flags.what != "http") return refuse("--uri is for http only");
  if (!flags.uri.empty() && !flags.uri.starts_with("http://") && !flags.uri.starts_with("https://"))
    return refuse(fmt::format("--uri {} is neither http:// nor https://", flags.uri));
  return atDesk(options, flags.node,
                [&](Desk& desk) { return boot(desk, NodeName(flags.node), flags); });
}

}  // namespace muster::cli
