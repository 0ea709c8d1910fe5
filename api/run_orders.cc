// SPDX-License-Identifier: Apache-2.0
#include "api/run_orders.h"

#include "app/nodes/bmc_credentials.h"
#include "app/plans/rollout_guard.h"
#include "app/validation/gate_plan.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/rollout/record.h"

#include <algorithm>
#include <array>
#include <utility>

namespace muster::api {

lifecycle::RunActor runActorOf(const Call& call) {
  return {call.identity.principal,
          std::string(toString(call.identity.way)),
          call.address,
          call.identity.person,
          call.identity.issuers,
          call.identity.account,
          call.identity.token};
}

namespace {

std::expected<void, Problem> require(const Call& call, Verb verb, std::string_view what) {
  const auto& who = call.identity;
  if (may(who.role, verb)) return {};
  return std::unexpected(denied(fmt::format("{} ({}) may not ask for: {} (verb {})", who.principal,
                                            toString(who.role), what, toString(verb)),
                                rolesThatMay(verb)));
}

/// What each member of the order belongs to.
constexpr std::array<std::pair<std::string_view, lifecycle::RunKind>, 19> kMembers{
    {{"disks", lifecycle::RunKind::Erase},
     {"reason", lifecycle::RunKind::FirmwareRetry},
     {"reason", lifecycle::RunKind::Erase},
     {"confirm_node", lifecycle::RunKind::Erase},
     {"change", lifecycle::RunKind::Rollout},
     {"driver", lifecycle::RunKind::Rollout},
     {"canaries", lifecycle::RunKind::Rollout},
     {"on_failure", lifecycle::RunKind::Rollout},
     {"on_inconclusive", lifecycle::RunKind::Rollout},
     {"wipe_reason", lifecycle::RunKind::Rollout},
     {"rollback", lifecycle::RunKind::Rollout},
     {"gates", lifecycle::RunKind::Validate},
     {"synchronized_load", lifecycle::RunKind::Validate},
     {"engine", lifecycle::RunKind::Isolate},
     {"min_gbps", lifecycle::RunKind::Isolate},
     {"seed", lifecycle::RunKind::Isolate},
     {"until", lifecycle::RunKind::Isolate},
     {"image", lifecycle::RunKind::ImageBuild},
     {"over", lifecycle::RunKind::ImageBuild}}};

/// Whether whoever may ask for runs may ask for this kind, in this way.
std::expected<void, Problem> mayAskFor(lifecycle::RunKind kind, const Call& call) {
  for (const auto& [member, of] : kMembers) {
    const auto owns = [&member, kind](const auto& each) {
      return each.first == member && each.second == kind;
    };
    if (call.body.contains(member) && std::ranges::none_of(kMembers, owns))
      return std::unexpected(
          Problem(400, "invalid-input",
                  fmt::format("\"{}\" belongs to a run of kind {}", member, toString(of))));
  }
  // A change that nobody has reviewed says what runs on nodes; a driver is declared.
  if (!call.text("change").empty())
    TRY_OK(require(call, Verb::Admin, "a rollout of a change that the inventory does not declare"));
  if (!call.text("wipe_reason").empty())
    TRY_OK(require(call, Verb::Wipe, "a rollout that wipes disks"));
  if (kind == lifecycle::RunKind::Validate) TRY_OK(require(call, Verb::Validate, "a validation"));
  if (kind == lifecycle::RunKind::Isolate) TRY_OK(require(call, Verb::Validate, "an isolation"));
  if (kind == lifecycle::RunKind::BmcPassword)
    TRY_OK(require(call, Verb::Rotate, "a change of BMCs' passwords"));
  if (kind == lifecycle::RunKind::BmcCertificate)
    TRY_OK(require(call, Verb::Rotate, "new certificates of BMCs"));
  if (kind != lifecycle::RunKind::Erase) return {};
  TRY_OK(require(call, Verb::Erase, "an erasure of disks"));
  if (call.text("nodes").empty() || call.text("confirm_node") != call.text("nodes"))
    return std::unexpected(Problem(400, "invalid-input",
                                   "an erasure names its one node twice: in \"nodes\" and in "
                                   "\"confirm_node\"",
                                   "this cannot be undone; nothing was done"));
  return {};
}

std::expected<void, Problem> readRollout(SiteReader& reader, const Call& call,
                                         app::RunRequest& request) {
  auto& rollout = request.rollout;
  rollout.wipe_reason = call.text("wipe_reason");
  if (const auto id = call.text("rollback"); !id.empty()) {
    for (const auto* other : {"nodes", "change", "driver", "canaries"})
      if (call.body.contains(other))
        return std::unexpected(Problem(
            400, "invalid-input",
            fmt::format("\"rollback\" undoes a rollout as it was: leave out \"{}\"", other)));
    TRY(record, lifecycle::RolloutRecord::open(reader.store(), id));
    TRY_OK(app::mayRollBack(reader.options(), reader.store(), record));
    rollout.id = id;
    rollout.back = true;
    return {};
  }
  rollout.change = call.text("change");
  rollout.driver = call.text("driver");
  rollout.change_file = reader.options().inventory.string();
  rollout.canaries = static_cast<std::size_t>(call.integer("canaries", 0));
  rollout.on_failure = lifecycle::parseOnFailure(call.text("on_failure"));
  if (!rollout.on_failure && call.body.contains("on_failure"))
    return std::unexpected(Problem(400, "invalid-input", "\"on_failure\" is halt or roll-back"));
  rollout.on_inconclusive = lifecycle::parseOnInconclusive(call.text("on_inconclusive"));
  if (!rollout.on_inconclusive && call.body.contains("on_inconclusive"))
    return std::unexpected(
        Problem(400, "invalid-input", "\"on_inconclusive\" is halt or continue"));
  return {};
}

/// Whether the nodes have the gates that are named, while who asks is still there to be told.
std::expected<void, Problem> checkGates(SiteReader& reader, const app::RunRequest& request) {
  if (request.validate.gates.empty() || request.apply.nodes.empty()) return {};
  TRY(session, reader.session());
  TRY(names, inventory::expandHostlist(request.apply.nodes));
  const std::vector<NodeName> nodes(names.begin(), names.end());
  TRY_OK(app::requireGates(session->cluster(), nodes, request.validate.gates));
  return {};
}

/// Likewise: whether each of their BMCs has a next password.
std::expected<void, Problem> checkNextPasswords(SiteReader& reader, const std::string& nodes) {
  TRY(session, reader.session());
  TRY(names, inventory::expandHostlist(nodes));
  for (const auto& name : names)
    TRY_OK(app::requireNextPassword(session->cluster(), NodeName(name)));
  return {};
}

}  // namespace

std::expected<lifecycle::Run, Problem> submitRun(SiteReader& reader, const Call& call,
                                                 lifecycle::RunKind kind) {
  TRY_OK(mayAskFor(kind, call));
  app::RunRequest request{.kind = kind,
                          .apply = {call.text("nodes"), call.flag("confirm"),
                                    "API: " + std::string(toString(kind)), call.text("inventory")}};
  if (const auto word = call.text("after_restart"); !word.empty()) {
    const auto policy = lifecycle::parseAfterRestart(word);
    if (!policy)
      return std::unexpected(
          Problem(400, "invalid-input", "\"after_restart\" is continue or pause"));
    request.after_restart = *policy;
  }
  if (!request.apply.nodes.empty()) TRY_OK(requireInScope(reader, call, request.apply.nodes));
  if (kind == lifecycle::RunKind::Erase)
    request.erase = {call.texts("disks"), call.text("reason"), ""};
  if (kind == lifecycle::RunKind::Rollout) TRY_OK(readRollout(reader, call, request));
  request.idempotency_key = call.idempotency_key;
  if (kind == lifecycle::RunKind::Validate) {
    request.validate = {call.texts("gates"), call.flag("synchronized_load")};
    TRY_OK(checkGates(reader, request));
  }
  if (kind == lifecycle::RunKind::BmcPassword && !request.apply.nodes.empty())
    TRY_OK(checkNextPasswords(reader, request.apply.nodes));
  if (kind == lifecycle::RunKind::FirmwareRetry)
    request.firmware_retry.reason = call.text("reason");
  if (kind == lifecycle::RunKind::ImageBuild)
    request.image_build = {call.text("image"), call.text("over")};
  if (kind == lifecycle::RunKind::Isolate)
    request.isolate = {call.text("engine"), call.number("min_gbps"),
                       static_cast<std::uint64_t>(call.integer("seed", 0)),
                       call.text("until") == "cleared" ? "" : call.text("until")};
  TRY(store, app::openRunStore(reader.options()));
  TRY(made, app::submitRun(*store, request, runActorOf(call), reader.now()));
  return std::move(made);
}

/// What to do has a place of its own in a problem.
std::unexpected<Problem> refused(Error error, const std::string& id) {
  auto advice = app::whatToDo(error, id);
  Problem out(std::move(error));
  if (advice.empty()) return std::unexpected(std::move(out));
  if (const auto end = "; " + advice; out.detail.ends_with(end))
    out.detail.resize(out.detail.size() - end.size());
  out.what_to_do = std::move(advice);
  if (out.status == 403) out.roles = rolesThatMay(Verb::Approve);
  return std::unexpected(std::move(out));
}

}  // namespace muster::api
