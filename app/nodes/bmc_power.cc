// SPDX-License-Identifier: Apache-2.0
#include "app/nodes/bmc_power.h"

#include "app/runs/run_policy.h"
#include "app/site/effective_cluster.h"
#include "app/site/leadership.h"
#include "app/site/session.h"
#include "app/site/state_folder.h"
#include "bmc/readiness.h"
#include "inventory/model/cluster.h"
#include "lab/lab.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>

namespace muster::app {
namespace {

using lifecycle::Subject;

constexpr std::chrono::minutes kBmcReturnTimeout{
    10};  ///< until a BMC answers again that has its power back
constexpr std::chrono::seconds kPresencePoll{2};
/// How long a node stays claimed after a switch that nobody lived to end; an AC cycle waits for a
/// BMC that has its power back.
constexpr std::chrono::minutes kPowerLease{4}, kCutLease{15};

/// Of the switches of one node from this host there is one at a time, so what an earlier process
/// left under this name is free.
std::string claimantOf(const NodeName& node) {
  return fmt::format("bmc power of {} at {}", node.str(), hostName());
}

constexpr std::array kPowerCommands{
    PowerCommandRow{PowerCommand::On, "on", false, "is switched on"},
    PowerCommandRow{PowerCommand::Shutdown, "shutdown", true, "is asked to shut down"},
    PowerCommandRow{PowerCommand::Off, "off", true, "loses its power at once"},
    PowerCommandRow{PowerCommand::Restart, "restart", true,
                    "loses its power at once and gets it again"},
    PowerCommandRow{PowerCommand::AcCycle, "ac-cycle", true,
                    "loses standby power too, for minutes: its BMC goes with it"},
    PowerCommandRow{PowerCommand::Nmi, "nmi", true,
                    "gets a non-maskable interrupt: its system writes a crash dump, or stops"},
    PowerCommandRow{PowerCommand::ResetBmc, "reset", true, "keeps running; its BMC restarts"}};

/// Why nobody should touch it now; empty: nothing is known against it.
Result<std::string> whyNot(lifecycle::Store& store, const NodeName& node, bool force) {
  const Subject subject(node);
  TRY(open, store.openIntentsOf(subject));
  if (!open.empty())
    return fmt::format(
        "{} is under way on it{}; let it end: muster apply --nodes {}", open.front().action.id,
        open.front().operation.empty() ? "" : " (" + open.front().operation.substr(0, 80) + ")",
        node.str());
  TRY(claims, store.claims());
  for (const auto& claim : claims)
    if (claim.subject == subject && !claim.ours && claim.holder != claimantOf(node))
      return fmt::format(
          "{} works on it; when that has ended, or died, the node is free within "
          "minutes: try again then",
          claim.holder);
  TRY(facts, store.factsOf(subject));
  for (const auto& fact : facts)
    if (fact.facet.str() == lifecycle::kPoolFacet && lifecycle::mayTakeJobs(fact.value) && !force)
      return fmt::format(
          "it may be running jobs (pool: {}); drain it first: muster quarantine add {} --reason "
          "…, or add --force",
          fact.value, node.str());
  return std::string();
}

/// A machine, and on whose behalf it is worked on.
struct Machine {
  Session& session;
  NodeName node;
  std::string actor;
};

Result<void> note(const Machine& machine, const std::string& text) {
  return addNote(machine.session.store(), Subject(machine.node),
                 fmt::format("{}: {}", machine.actor, text));
}

std::string powerCutKey(const NodeName& node) { return "bmc.cut." + node.str(); }

/// A muster that ended between off and on left the outlets off: the BMC is silent until they are
/// switched on.
Result<void> restorePower(const Machine& machine, bool by_ipmi,
                          const std::function<void(const std::string&)>& notice) {
  auto& controller = *machine.session.controller;
  const auto& node = machine.node;
  TRY(mark, controller.store().getValue(powerCutKey(node)));
  if (!mark || mark->empty()) return {};
  TRY(cut_at, parseWallTime(*mark));
  auto& bmc = controller.bmcs().at(node);
  const auto seen = controller.run(bmc.system());
  if (!seen && !seen.error().canRetry()) return {};
  if (!seen) {
    notice(fmt::format(
        "{}: its standby power was cut at {} and not restored; restoring it, and waiting for its "
        "BMC",
        node.str(), *mark));
    TRY_OK(note(machine, "restores the standby power that was cut at " + *mark));
    TRY_OK(controller.run(bmc.restorePower(cut_at)));
    if (by_ipmi) return {};  // its Redfish may stay silent for another reason
    TRY_OK(controller.run(
        bmc::waitUntilReady(bmc, controller.clock(), {kBmcReturnTimeout, kPresencePoll, true})));
  }
  return controller.store().putValue(powerCutKey(node), "");
}

/// Firmware that is being written forbids every cut, a second slot that is being filled too. A BMC
/// that does not answer may be writing; one that lists its tasks but not its inventory (DGX H100,
/// while the host is off) is believed.
Result<void> refuseUnderFlash(Controller& controller, bmc::Bmc& redfish, bool by_ipmi) {
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

Async<void> carryOut(bmc::Bmc& bmc, PowerCommand command) {
  switch (command) {
    case PowerCommand::On:
      return bmc.power(bmc::PowerAction::On);
    case PowerCommand::Shutdown:
      return bmc.power(bmc::PowerAction::GracefulShutdown);
    case PowerCommand::Off:
      return bmc.power(bmc::PowerAction::ForceOff);
    case PowerCommand::Restart:
      return bmc.power(bmc::PowerAction::ForceRestart);
    case PowerCommand::AcCycle:
      return bmc.acCycle();
    case PowerCommand::Nmi:
      return bmc.sendNmi();
    case PowerCommand::ResetBmc:
      break;
  }
  return bmc.resetBmc();
}

struct BootKind {
  std::string_view word;
  bmc::BootTarget target;
};
constexpr std::array<BootKind, 3> kBootKinds = {{{"network", bmc::BootTarget::Pxe},
                                                 {"http", bmc::BootTarget::UefiHttp},
                                                 {"disk", bmc::BootTarget::Disk}}};

Result<bmc::Bmc*> bmcOf(Controller& controller, const NodeName& node, bool ipmi) {
  auto& fleet = controller.bmcs();
  if (!ipmi) return &fleet.at(node);
  if (auto* found = fleet.ipmiOf(node)) return found;
  return fail(ErrorCode::NotFound,
              fmt::format("no IPMI is declared for {}; add ipmi: {{}} to its profile", node.str()));
}

Result<LockedSession> openFor(const Options& options, const NodeName& node) {
  TRY(live, effectiveCluster(options));
  TRY(locked, LockedSession::open(options, std::move(live)));
  if (!locked.session->cluster().findNode(node))
    return fail(ErrorCode::NotFound,
                fmt::format("node {} is not in the inventory; nothing was done", node.str()));
  return std::move(locked);
}

/// What the inventory asks for before the node is reset by a person; empty: nothing.
Result<std::string> askedByInventory(lifecycle::Store& store, const inventory::Cluster& cluster,
                                     const NodeName& node, WallTime now) {
  const Subject subject(node);
  lifecycle::Plan plan;
  plan.actions.emplace_back().facet.subject = subject;
  lifecycle::PlanImpact impact;
  impact.actions = impact.subjects = 1;
  impact.reset = {node};
  TRY(facts, store.factsOf(subject));
  const auto pool = std::ranges::find_if(
      facts, [](const auto& fact) { return fact.facet.str() == lifecycle::kPoolFacet; });
  if (pool == facts.end() || lifecycle::mayTakeJobs(pool->value)) impact.taken_out = {node};
  const auto needed = approvalsNeeded(cluster, plan, impact);
  TRY(window, windowFor(cluster, impact.taken_out, now));
  if (needed > 0)
    return fmt::format("the inventory asks for {} approvals before {} is reset", needed,
                       node.str());
  return window.is_open ? std::string()
                        : fmt::format("no maintenance window of pool {} is open now",
                                      fmt::join(window.pools, ", "));
}

/// Why the command must not be given now, for a disruptive one. Answers what it goes over; empty:
/// nothing.
Result<std::string> checkDisruption(lifecycle::Store& store, const inventory::Cluster& cluster,
                                    const PowerRequest& request, WallTime now) {
  TRY(why, whyNot(store, request.node, request.force));
  if (!why.empty()) return fail(ErrorCode::Conflict, why + "; nothing was done");
  if (request.command == PowerCommand::ResetBmc) return std::string();  // the node runs on
  TRY(asked, askedByInventory(store, cluster, request.node, now));
  if (asked.empty() || request.override_inventory) return std::move(asked);
  return fail(ErrorCode::Denied,
              fmt::format("{}, and a switch cannot wait for them; nothing was done. Take the node "
                          "out by a run (muster quarantine add {} --reason …), or add --override, "
                          "which stays a finding until somebody has seen it",
                          asked, request.node.str()));
}

Result<void> mayDisrupt(const Machine& machine, const PowerRequest& request) {
  auto& session = machine.session;
  const auto now = session.controller->clock().now();
  TRY(asked, checkDisruption(session.store(), session.cluster(), request, now));
  if (asked.empty() || !request.confirmed) return {};
  return session.store().addFinding(
      {{Subject(request.node), FacetName("power.override")},
       Severity::Warning,
       fmt::format("OVERRIDE by {}: bmc power {} although {}; reason: {}", machine.actor,
                   rowOf(request.command).word, asked, request.reason),
       "",
       fmt::format("when you know of it: muster findings {} --clear power.override --reason …",
                   request.node.str()),
       now,
       "bmc power"});
}

Result<void> requireReason(const PowerRequest& request) {
  if (!rowOf(request.command).is_disruptive || !request.confirmed ||
      request.reason.find_first_not_of(" \t") != std::string::npos)
    return {};
  return fail(ErrorCode::InvalidInput,
              "--reason is missing; it is kept in the log; nothing was done");
}

/// Whether the command is carried out, and not only checked.
bool acts(const PowerRequest& request) {
  return request.confirmed || !rowOf(request.command).is_disruptive;
}

Result<PowerResult> askBmc(const Machine& machine, const PowerRequest& request,
                           const std::function<void(const std::string&)>& notice) {
  const auto& row = rowOf(request.command);
  auto& controller = *machine.session.controller;
  const auto& node = request.node;
  TRY(bmc, bmcOf(controller, node, request.ipmi));
  const bool cuts = request.command == PowerCommand::AcCycle;
  if (request.command == PowerCommand::On || (cuts && request.confirmed))
    TRY_OK(restorePower(machine, request.ipmi, notice));
  if (row.is_disruptive)
    TRY_OK(refuseUnderFlash(controller, controller.bmcs().at(node), request.ipmi));
  TRY(before, controller.run(bmc->system()));
  PowerResult out{std::string(bmc->address()), before.power, std::nullopt};
  if (!acts(request)) return out;
  auto& store = controller.store();
  if (cuts) TRY_OK(store.putValue(powerCutKey(node), toString(controller.clock().now())));
  const auto done = controller.run(carryOut(*bmc, request.command));
  const auto after = controller.run(bmc->system());
  if (cuts && (done || after)) TRY_OK(store.putValue(powerCutKey(node), ""));
  (void)controller.run(controller.bmcs().close());
  if (!done) return fail(done.error());
  out.after =
      after ? Result<bmc::PowerState>(after->power) : Result<bmc::PowerState>(fail(after.error()));
  return out;
}

/// Noted before the BMC is asked, because muster may die while it works; and what came of it.
Result<PowerResult> switchPower(const Machine& machine, const PowerRequest& request,
                                const std::function<void(const std::string&)>& notice) {
  const auto& row = rowOf(request.command);
  if (row.is_disruptive) TRY_OK(mayDisrupt(machine, request));
  if (!acts(request)) return askBmc(machine, request, notice);
  const auto what = fmt::format("bmc power {}{}", row.word, request.ipmi ? " by IPMI" : "");
  TRY_OK(note(machine, fmt::format("{}: {}", what,
                                   request.reason.empty() ? "no reason given" : request.reason)));
  auto done = askBmc(machine, request, notice);
  TRY_OK(note(machine, done ? what + ": done" : what + ": failed: " + done.error().text()));
  return done;
}

/// A session without the lock of the state folder: beside a server, and for who only looks, so that
/// no run has to pause for a glance at a BMC.
Result<std::unique_ptr<Session>> openBeside(const Options& options, const NodeName& node) {
  TRY(live, effectiveCluster(options));
  TRY_OK(requireNode(live->cluster(), node.str()));
  TRY_OK(prepareStateFolder(options.state));
  TRY(store, openStoreForWriting(options));  // makes the store of a new state folder
  store.reset();
  TRY(session, Session::openStored(options, std::move(live)));
  if (session->lab) TRY_OK(lab::enter(*session->lab));
  return std::move(session);
}

/// The node is this session's as long as this lives.
class NodeClaim {
 public:
  static Result<NodeClaim> take(lifecycle::Store& store, const NodeName& node,
                                std::chrono::milliseconds lease) {
    TRY_OK(store.signOn(claimantOf(node), lease));
    TRY(claim, store.claim(Subject(node)));
    if (!claim.ours)
      return fail(ErrorCode::Conflict,
                  fmt::format("{} works on {}; nothing was done", claim.holder, node.str()));
    return NodeClaim(store, node);
  }
  NodeClaim(NodeClaim&& other) noexcept
      : store_(std::exchange(other.store_, nullptr)), subject_(std::move(other.subject_)) {}
  ~NodeClaim() {
    if (store_) (void)store_->release(subject_);
  }

 private:
  NodeClaim(lifecycle::Store& store, const NodeName& node) : store_(&store), subject_(node) {}
  lifecycle::Store* store_;
  Subject subject_;
};

}  // namespace

const PowerCommandRow& rowOf(PowerCommand command) {
  return *std::find_if(kPowerCommands.begin(), kPowerCommands.end(),
                       [command](const auto& row) { return row.command == command; });
}

Result<PowerCommand> parsePowerCommand(std::string_view word) {
  for (const auto& row : kPowerCommands)
    if (row.word == word) return row.command;
  return fail(ErrorCode::InvalidInput, fmt::format("\"{}\" is no action; nothing was done", word));
}

Result<void> mayPowerNode(lifecycle::Store& store, const inventory::Cluster& cluster,
                          const PowerRequest& request, WallTime now) {
  TRY_OK(requireReason(request));
  if (!rowOf(request.command).is_disruptive) return {};
  TRY_OK(checkDisruption(store, cluster, request, now));
  return {};
}

Result<PowerResult> powerNode(const Options& options, const PowerRequest& request,
                              const std::function<void(const std::string&)>& notice) {
  TRY_OK(requireReason(request));
  if (!acts(request)) {
    TRY(session, openBeside(options, request.node));
    return switchPower({*session, request.node, actorText(options)}, request, notice);
  }
  TRY(locked, openFor(options, request.node));
  return switchPower({*locked.session, request.node, actorText(options)}, request, notice);
}

Result<PowerResult> powerNodeBeside(const Options& options, const PowerRequest& request,
                                    const std::function<void(const std::string&)>& notice) {
  TRY_OK(requireReason(request));
  TRY(session, openBeside(options, request.node));
  const auto claim =
      NodeClaim::take(session->store(), request.node,
                      request.command == PowerCommand::AcCycle ? kCutLease : kPowerLease);
  if (!claim) return std::unexpected(claim.error());
  return switchPower({*session, request.node, actorText(options)}, request, notice);
}

namespace {

std::string_view wordOf(bmc::BootTarget target) {
  switch (target) {
    case bmc::BootTarget::Pxe:
      return "pxe";
    case bmc::BootTarget::Disk:
      return "disk";
    case bmc::BootTarget::UefiHttp:
      return "http";
    case bmc::BootTarget::Cd:
      return "cd";
    case bmc::BootTarget::Usb:
      return "usb";
    default:
      return "none";
  }
}

}  // namespace

Result<std::vector<std::string>> orderWith(const bmc::BootOrder& order, const std::string& first) {
  std::vector<std::string> front;
  const auto add = [&front](const std::string& reference) {
    if (std::ranges::find(front, reference) == front.end()) front.push_back(reference);
  };
  for (std::size_t at = 0; at <= first.size();) {
    const auto end = std::min(first.find(',', at), first.size());
    const auto item = first.substr(at, end - at);
    at = end + 1;
    const auto kind = std::ranges::find(kBootKinds, item, &BootKind::word);
    bool found = false;
    for (const auto& option : order.options)
      if (kind != kBootKinds.end() ? option.starts_from == kind->target
                                   : option.reference == item) {
        add(option.reference);
        found = true;
      }
    if (found) continue;
    std::vector<std::string> there;
    for (const auto& option : order.options) there.push_back(option.reference);
    return fail(ErrorCode::NotFound,
                fmt::format("the machine's boot order has no option \"{}\"; name network, http, "
                            "disk or its references ({}); nothing was done",
                            item, fmt::join(there, ", ")));
  }
  for (const auto& option : order.options) add(option.reference);
  return front;
}

namespace {

/// Noted before, because muster may die while the BMC works; and what the BMC said to it after.
Result<void> noted(const Machine& machine, const std::string& what, Async<void> act) {
  TRY_OK(note(machine, what + ": asked for"));
  auto done = machine.session.controller->run(std::move(act));
  TRY_OK(note(machine, what + (done ? ": done" : ": failed: " + done.error().text())));
  return done;
}

Result<BootOrderResult> putFirst(const Machine& machine, const BootOrderRequest& request) {
  auto& controller = *machine.session.controller;
  auto& bmc = controller.bmcs().at(request.node);
  TRY(order, controller.run(bmc.bootOrder()));
  if (request.first.empty()) return BootOrderResult{std::move(order)};
  TRY(wanted, orderWith(order, request.first));
  std::vector<std::string> now;
  for (const auto& option : order.options) now.push_back(option.reference);
  if (order.staged == wanted || (order.staged.empty() && now == wanted))
    return BootOrderResult{std::move(order)};
  TRY_OK(noted(machine, "bmc boot-order --first " + request.first,
               bmc.setBootOrder(std::move(wanted))));
  TRY(after, controller.run(bmc.bootOrder()));
  return BootOrderResult{std::move(after), true};
}

Async<void> insertOne(bmc::Bmc& bmc, std::string url) {
  CO_TRY_OK(co_await bmc.insertMedia({std::move(url)}));
  co_return Result<void>();
}

Result<std::vector<bmc::VirtualMedium>> changeMedia(const Machine& machine,
                                                    const MediaRequest& request) {
  auto& controller = *machine.session.controller;
  auto& bmc = controller.bmcs().at(request.node);
  if (request.eject) {
    TRY_OK(noted(machine, "bmc media eject", bmc.ejectMedia("")));
  } else if (!request.insert.empty()) {
    TRY_OK(noted(machine, "bmc media insert " + request.insert, insertOne(bmc, request.insert)));
  }
  return controller.run(bmc.virtualMedia());
}

/// What `work` does by the node's BMC, and logs out there.
template <class T>
Result<T> withBmc(const Options& options, const NodeName& node, bool is_beside,
                  const std::function<Result<T>(const Machine&)>& work) {
  std::optional<LockedSession> locked;
  std::unique_ptr<Session> beside;
  if (is_beside) {
    TRY(opened, openBeside(options, node));
    beside = std::move(opened);
  } else {
    TRY(opened, openFor(options, node));
    locked = std::move(opened);
  }
  auto& session = beside ? *beside : *locked->session;
  auto done = work({session, node, actorText(options)});
  (void)session.controller->run(session.controller->bmcs().close());
  return done;
}

/// For an order beside whoever works on this host. Null: this host serves, nobody ever has, or
/// there is but one. Errors: Conflict (another host serves the site: which)
Result<std::unique_ptr<Leadership>> leadershipBeside(const Options& options, Session& session) {
  if (session.lab || !hasSeveralControllers(session.cluster())) return nullptr;
  TRY(leader, lifecycle::currentLeader(session.store()));
  TRY(own, holderOf(options.state, hostName()));
  if (!leader || leader->holder == own) return nullptr;
  return Leadership::acquire(options, session.cluster(), own);
}

Result<bool> switchLed(const Machine& machine, std::optional<bool> on) {
  auto& controller = *machine.session.controller;
  auto& bmc = controller.bmcs().at(machine.node);
  if (on) {
    TRY_OK(noted(machine, *on ? "bmc locate on" : "bmc locate off", bmc.setLocateLed(*on)));
  }
  return controller.run(bmc.locateLed());
}

}  // namespace

Result<BootOrderResult> bootOrder(const Options& options, const BootOrderRequest& request) {
  return withBmc<BootOrderResult>(
      options, request.node, request.first.empty(),
      [&](const Machine& machine) { return putFirst(machine, request); });
}

Result<void> checkMediaUrl(std::string_view url) {
  constexpr std::size_t kMaxUrlBytes = 2'048;
  const auto refused = [](std::string_view why) {
    return fail(ErrorCode::InvalidInput, fmt::format("the image's URL {}; nothing was done", why));
  };
  const auto colon = url.find("://");
  const auto scheme = url.substr(0, colon == std::string_view::npos ? 0 : colon);
  if (scheme != "http" && scheme != "https" && scheme != "nfs" && scheme != "smb")
    return refused("is no URL that a BMC could read: http://, https://, nfs:// or smb://");
  if (url.size() > kMaxUrlBytes) return refused("has more than 2048 bytes");
  const bool plain = std::ranges::all_of(url, [](unsigned char c) { return c > ' ' && c < 0x7f; });
  if (!plain) return refused("has a blank, or a character that is none of ASCII: write it as %XX");
  const auto rest = url.substr(colon + 3);
  const auto authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.contains('@') || rest.contains('?') || rest.contains('#'))
    return refused(
        "has a password, a query or a fragment, which would stay in the journal and on the BMC's "
        "page: serve the image without");
  if (authority.empty() || authority.starts_with(':')) return refused("names no host");
  if (authority.size() == rest.size() || rest.ends_with('/')) return refused("names no file");
  return {};
}

Result<std::vector<bmc::VirtualMedium>> virtualMedia(const Options& options,
                                                     const MediaRequest& request) {
  if (!request.insert.empty()) TRY_OK(checkMediaUrl(request.insert));
  return withBmc<std::vector<bmc::VirtualMedium>>(
      options, request.node, request.insert.empty() && !request.eject,
      [&](const Machine& machine) { return changeMedia(machine, request); });
}

Result<bool> locateNode(const Options& options, const NodeName& node, std::optional<bool> on) {
  // It disturbs nobody's work, and is asked for beside a monitor.
  return withBmc<bool>(options, node, true, [&](const Machine& machine) -> Result<bool> {
    std::unique_ptr<Leadership> leadership;
    if (on) {
      TRY(held, leadershipBeside(options, machine.session));
      leadership = std::move(held);
    }
    return switchLed(machine, on);
  });
}

Result<void> setBootDevice(const Options& options, const BootRequest& request) {
  const auto& boot = request.boot;
  if (!boot.http_uri.empty() && boot.target != bmc::BootTarget::UefiHttp)
    return fail(ErrorCode::InvalidInput, "--uri is for http only; nothing was done");
  if (!boot.http_uri.empty() && !boot.http_uri.starts_with("http://") &&
      !boot.http_uri.starts_with("https://"))
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("--uri {} is neither http:// nor https://; nothing was done", boot.http_uri));
  TRY(locked, openFor(options, request.node));
  auto& controller = *locked.session->controller;
  TRY_OK(note({*locked.session, request.node, actorText(options)},
              fmt::format("bmc boot {}{} {}", wordOf(boot.target),
                          boot.persistent ? " for all boots" : "", boot.http_uri)));
  const auto done = controller.run(controller.bmcs().at(request.node).boot(boot));
  (void)controller.run(controller.bmcs().close());
  return done;
}

}  // namespace muster::app
