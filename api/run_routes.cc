// SPDX-License-Identifier: Apache-2.0
// Runs: work that outlives who asked for it. Rows only; the process that serves the site carries
// them out.
#include "app/plans/rollout_guard.h"
#include "app/runs/runs.h"

#include "api/answers.h"
#include "api/run_json.h"
#include "api/schema.h"
#include "base/json_input.h"
#include "lifecycle/model/json.h"

#include <array>
#include <utility>

namespace muster::api {
namespace {

using lifecycle::Run;

constexpr std::int64_t kDefaultRuns = 100, kMaxRuns = 1'000;
constexpr std::int64_t kEventsLimit = 200, kMaxEvents = 5'000;
constexpr std::int64_t kAnySequence = std::int64_t{1} << 53;
const Field kId{"id", Kind::Text, "A run", true};
const Field kPlanHash{"plan_hash", Kind::Text, "The plan that is meant: Run's own", true};

lifecycle::RunActor actorOf(const Call& call) {
  return {call.identity.principal,
          std::string(toString(call.identity.way)),
          call.address,
          call.identity.person,
          call.identity.issuers,
          call.identity.account};
}

/// Where it was: the cursor is what the last item began with.
Reply runs(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  const auto limit = static_cast<std::size_t>(call.integer("limit", kDefaultRuns));
  TRY(found, app::listRuns(*store, {.open_only = call.flag("open"),
                                    .limit = limit,
                                    .before = call.integer("cursor", 0)}));
  auto items = nlohmann::json::array();
  for (const auto& run : found) items.push_back(runJson(run));
  Answer out{200, {{"items", std::move(items)}}};
  if (found.size() == limit) out.body["next"] = std::to_string(found.back().first_event);
  return out;
}

Reply run(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  TRY(found, app::readRun(*store, call.text("id")));
  return Answer{200, runJson(found)};
}

Reply plan(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  TRY(found, app::readRun(*store, call.text("id")));
  TRY(kept, store->plan(found.id));
  if (!kept)
    return std::unexpected(Problem(404, "not-found", found.id + " has no plan that is kept"));
  TRY(json, parseJson(kept->json, kKeptJson));
  return Answer{200, std::move(json)};
}

Reply events(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  TRY(found, app::followRun(*store, reader.store(), call.text("id"), call.integer("after", 0),
                            static_cast<std::size_t>(call.integer("limit", kEventsLimit))));
  auto items = nlohmann::json::array();
  for (const auto& event : found.events) items.push_back(lifecycle::toJson(event));
  return Answer{200, {{"items", std::move(items)}, {"next", found.next}, {"ended", found.ended}}};
}

std::expected<void, Problem> require(const Call& call, Verb verb, std::string_view what) {
  const auto& who = call.identity;
  if (may(who.role, verb)) return {};
  return std::unexpected(denied(fmt::format("{} ({}) may not ask for: {} (verb {})", who.principal,
                                            toString(who.role), what, toString(verb)),
                                rolesThatMay(verb)));
}

/// What each member of the order belongs to.
constexpr std::array<std::pair<std::string_view, lifecycle::RunKind>, 10> kMembers{
    {{"disks", lifecycle::RunKind::Erase},
     {"reason", lifecycle::RunKind::Erase},
     {"confirm_node", lifecycle::RunKind::Erase},
     {"change", lifecycle::RunKind::Rollout},
     {"driver", lifecycle::RunKind::Rollout},
     {"canaries", lifecycle::RunKind::Rollout},
     {"on_failure", lifecycle::RunKind::Rollout},
     {"on_inconclusive", lifecycle::RunKind::Rollout},
     {"wipe_reason", lifecycle::RunKind::Rollout},
     {"rollback", lifecycle::RunKind::Rollout}}};

/// Whether whoever may ask for runs may ask for this kind, in this way.
std::expected<void, Problem> mayAskFor(lifecycle::RunKind kind, const Call& call) {
  for (const auto& [member, of] : kMembers)
    if (of != kind && call.body.contains(member))
      return std::unexpected(
          Problem(400, "invalid-input",
                  fmt::format("\"{}\" belongs to a run of kind {}", member, toString(of))));
  // A change that nobody has reviewed says what runs on nodes; a driver is declared.
  if (!call.text("change").empty())
    TRY_OK(require(call, Verb::Admin, "a rollout of a change that the inventory does not declare"));
  if (!call.text("wipe_reason").empty())
    TRY_OK(require(call, Verb::Wipe, "a rollout that wipes disks"));
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
  rollout.on_failure = call.text("on_failure");
  rollout.on_inconclusive = call.text("on_inconclusive");
  return {};
}

Reply submit(SiteReader& reader, const Call& call) {
  const auto kind = lifecycle::parseRunKind(call.text("kind"));
  if (!kind)
    return std::unexpected(Problem(400, "invalid-input",
                                   "\"" + call.text("kind") + "\" is no kind of run",
                                   "there are: apply, erase, rollout"));
  TRY_OK(mayAskFor(*kind, call));
  app::RunRequest request{
      .kind = *kind,
      .apply = {call.text("nodes"), call.flag("confirm"), "API: " + call.text("kind")}};
  if (const auto word = call.text("after_restart"); !word.empty()) {
    const auto policy = lifecycle::parseAfterRestart(word);
    if (!policy)
      return std::unexpected(
          Problem(400, "invalid-input", "\"after_restart\" is continue or pause"));
    request.after_restart = *policy;
  }
  if (!request.apply.nodes.empty()) TRY_OK(requireInScope(reader, call, request.apply.nodes));
  if (*kind == lifecycle::RunKind::Erase)
    request.erase = {call.texts("disks"), call.text("reason"), ""};
  if (*kind == lifecycle::RunKind::Rollout) TRY_OK(readRollout(reader, call, request));
  request.idempotency_key = call.idempotency_key;
  TRY(store, app::openRunStore(reader.options()));
  TRY(made, app::submitRun(*store, request, actorOf(call), reader.now()));
  return Answer{202, runJson(made), {{"Location", std::string(kBasePath) + "/runs/" + made.id}}};
}

using Order = Result<Run> (*)(lifecycle::RunStore&, const std::string&, const lifecycle::RunActor&,
                              WallTime);
using Word = Result<Run> (*)(lifecycle::RunStore&, const std::string&, const std::string&,
                             const lifecycle::RunActor&, WallTime);

Act ordered(Order order) {
  return [order](SiteReader& reader, const Call& call) -> Reply {
    TRY(store, app::openRunStore(reader.options()));
    TRY(run, order(*store, call.text("id"), actorOf(call), reader.now()));
    return Answer{200, runJson(run)};
  };
}

Act said(Word word) {
  return [word](SiteReader& reader, const Call& call) -> Reply {
    TRY(store, app::openRunStore(reader.options()));
    TRY(run, word(*store, call.text("id"), call.text("plan_hash"), actorOf(call), reader.now()));
    return Answer{200, runJson(run)};
  };
}

Reply overridden(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  TRY(run, app::overrideRun(*store, call.text("id"), call.text("plan_hash"), call.text("reason"),
                            actorOf(call), reader.now()));
  return Answer{200, runJson(run)};
}

}  // namespace

void addRunRoutes(std::vector<ApiRoute>& routes) {
  const auto add = [&](std::string_view method, std::string path, Verb verb,
                       std::string_view summary, std::vector<Field> fields, nlohmann::json schema,
                       Act act, int status = 200) {
    const bool has_id = path.find('{') != std::string::npos;
    const bool is_order = method == "POST";
    routes.push_back(
        {method, std::move(path), verb, Reach::Site, summary,
         has_id ? std::vector{kId} : std::vector<Field>(), is_order ? std::vector<Field>() : fields,
         is_order ? fields : std::vector<Field>(), std::move(schema), status, std::move(act)});
  };
  const nlohmann::json part = {{"next", {{"type", "integer"}}}, {"ended", {{"type", "boolean"}}}};
  add("GET", "/runs", Verb::Look, "Runs, newest first",
      {{"open", Kind::Boolean, "true: only those that are not over"},
       {"limit", Kind::Integer, "Items of a page", false, 1, kMaxRuns},
       {"cursor", Kind::Integer, "`next` of the page before", false, 0, kAnySequence}},
      listOf("Run"), runs);
  add("GET", "/runs/{id}", Verb::Look, "How far a run is", {}, refTo("Run"), run);
  add("GET", "/runs/{id}/plan", Verb::Look, "Its newest plan", {}, {{"type", "object"}}, plan);
  add("GET", "/runs/{id}/events", Verb::Look, "What has happened in it",
      {{"after", Kind::Integer, "Behind this sequence number", false, 0, kAnySequence},
       {"limit", Kind::Integer, "Entries of the log that are looked at", false, 1, kMaxEvents}},
      listOf("Event", part), events);
  add("POST", "/runs", Verb::Run, "Ask for a run",
      {{"kind", Kind::Text, "apply, rollout, or erase (with the verb erase)", true},
       {"nodes", Kind::Hostlist, "These only; default: all. Of erase: one"},
       {"confirm", Kind::Boolean, "Wait for its author's yes when the plan is known"},
       {"after_restart", Kind::Text, "continue or pause"},
       {"disks", Kind::Texts, "Of erase: serials; default: all that are built in"},
       {"reason", Kind::Text, "Of erase: why; kept in the log and in the report"},
       {"confirm_node", Kind::Text, "Of erase: the node again"},
       {"driver", Kind::Text, "Of rollout: a declared driver for the one of its kind"},
       {"change", Kind::Text, "Of rollout: a fragment of an inventory (with the verb admin)"},
       {"canaries", Kind::Integer, "Of rollout: nodes of the first wave", false, 1, 10'000},
       {"on_failure", Kind::Text, "Of rollout: halt or roll-back"},
       {"on_inconclusive", Kind::Text, "Of rollout: halt or continue"},
       {"wipe_reason", Kind::Text,
        "Of rollout: why each disk may be wiped once (with the verb wipe)"},
       {"rollback", Kind::Text, "Of rollout: undo this rollout, by its id"}},
      refTo("Run"), submit, 202);
  routes.back().knows_its_key = true;
  add("POST", "/runs/{id}/cancel", Verb::Run, "End it; nothing new begins", {}, refTo("Run"),
      ordered(app::cancelRun));
  add("POST", "/runs/{id}/pause", Verb::Run, "Begin nothing new", {}, refTo("Run"),
      ordered(app::pauseRun));
  add("POST", "/runs/{id}/resume", Verb::Run, "Go on", {}, refTo("Run"), ordered(app::resumeRun));
  add("POST", "/runs/{id}/confirm", Verb::Run, "Its author's yes to the plan", {kPlanHash},
      refTo("Run"), said(app::confirmRun));
  add("POST", "/runs/{id}/approve", Verb::Approve, "Somebody else's yes to the plan", {kPlanHash},
      refTo("Run"), said(app::approveRun));
  add("POST", "/runs/{id}/override", Verb::Admin,
      "Let its plan begin without its approvals, or outside a maintenance window",
      {kPlanHash, {"reason", Kind::Text, "Why; shown until it is acknowledged", true}},
      refTo("Run"), overridden);
  add("POST", "/runs/{id}/acknowledge", Verb::Approve, "Say that its overrides are known", {},
      refTo("Run"), ordered(app::acknowledgeRun));
}

}  // namespace muster::api
