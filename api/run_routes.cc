// SPDX-License-Identifier: Apache-2.0
// Runs: work that outlives who asked for it. Rows only; the process that serves the site carries
// them out.
#include "app/plans/rollout_guard.h"
#include "app/runs/runs.h"

#include "api/answers.h"
#include "api/run_json.h"
#include "api/run_orders.h"
#include "api/schema.h"
#include "base/json_input.h"
#include "lifecycle/model/json.h"

namespace muster::api {
namespace {

using lifecycle::Run;

constexpr std::int64_t kDefaultRuns = 100, kMaxRuns = 1'000;
constexpr std::int64_t kEventsLimit = 200, kMaxEvents = 5'000;
const Field kId{"id", Kind::Text, "A run", true};
const Field kPlanHash{"plan_hash", Kind::Text,
                      "The plan that is meant: Run's own, or its first digits, eight at least",
                      true};

constexpr const char* kKinds =
    "there are: apply, bmc-certificate, bmc-password, erase, firmware-retry, image-build, isolate, "
    "rollout, validate";

Reply runAnswer(SiteReader& reader, Run run) {
  TRY(marked, app::withVoidWords(reader.store(), std::move(run)));
  return Answer{200, runJson(marked)};
}

/// Where it was: the cursor is what the last item began with.
Reply runs(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  const auto limit = static_cast<std::size_t>(call.integer("limit", kDefaultRuns));
  const auto word = call.text("kind");
  const auto kind = lifecycle::parseRunKind(word);
  if (!word.empty() && !kind)
    return std::unexpected(
        Problem(400, "invalid-input", "\"" + word + "\" is no kind of run", kKinds));
  TRY(found, app::listRuns(*store, {.open_only = call.flag("open"),
                                    .limit = limit,
                                    .before = call.integer("cursor", 0),
                                    .kind = kind}));
  TRY_OK(app::markVoidWords(reader.store(), found));
  auto items = nlohmann::json::array();
  for (const auto& run : found) items.push_back(runJson(run));
  Answer out{200, {{"items", std::move(items)}}};
  if (found.size() == limit) out.body["next"] = std::to_string(found.back().first_event);
  return out;
}

Reply run(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  TRY(found, app::readRun(*store, call.text("id")));
  return runAnswer(reader, std::move(found));
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

Reply submit(SiteReader& reader, const Call& call) {
  const auto kind = lifecycle::parseRunKind(call.text("kind"));
  if (!kind)
    return std::unexpected(
        Problem(400, "invalid-input", "\"" + call.text("kind") + "\" is no kind of run", kKinds));
  TRY(made, submitRun(reader, call, *kind));
  return Answer{202, runJson(made), {{"Location", std::string(kBasePath) + "/runs/" + made.id}}};
}

using Order = Result<Run> (*)(lifecycle::RunStore&, const std::string&, const lifecycle::RunActor&,
                              WallTime);
using Word = Result<Run> (*)(lifecycle::RunStore&, const std::string&, const std::string&,
                             const lifecycle::RunActor&, WallTime);

Act ordered(Order order) {
  return [order](SiteReader& reader, const Call& call) -> Reply {
    TRY(store, app::openRunStore(reader.options()));
    auto run = order(*store, call.text("id"), runActorOf(call), reader.now());
    if (!run) return refused(std::move(run).error(), call.text("id"));
    return runAnswer(reader, *std::move(run));
  };
}

/// A halted rollout may go on although a gate failed.
Reply resumed(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  if (call.body.contains("accept")) {
    TRY(run, app::readRun(*store, call.text("id")));
    TRY_OK(app::acceptGate(reader.options(), run, call.text("accept"), call.actor));
  }
  TRY(run, app::resumeRun(*store, call.text("id"), runActorOf(call), reader.now()));
  return runAnswer(reader, std::move(run));
}

Act said(Word word) {
  return [word](SiteReader& reader, const Call& call) -> Reply {
    TRY(store, app::openRunStore(reader.options()));
    auto run =
        word(*store, call.text("id"), call.text("plan_hash"), runActorOf(call), reader.now());
    if (!run) return refused(std::move(run).error(), call.text("id"));
    return runAnswer(reader, *std::move(run));
  };
}

Reply overridden(SiteReader& reader, const Call& call) {
  TRY(store, app::openRunStore(reader.options()));
  auto run = app::overrideRun(*store, call.text("id"), call.text("plan_hash"), call.text("reason"),
                              runActorOf(call), reader.now());
  if (!run) return refused(std::move(run).error(), call.text("id"));
  return runAnswer(reader, *std::move(run));
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
       {"kind", Kind::Text,
        "Only these: apply, rollout, firmware-retry, image-build, validate, isolate, bmc-password, "
        "bmc-certificate, or erase"},
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
      {{"kind", Kind::Text,
        "apply, rollout, firmware-retry, image-build, validate or isolate (with the verb "
        "validate), bmc-password or bmc-certificate (with the verb rotate), or erase "
        "(with the verb erase)",
        true},
       {"engine", Kind::Text, "Of isolate: rdma, nccl or tcp; default: what the nodes have"},
       {"min_gbps", Kind::Number, "Of isolate: the least rate of a healthy pair, in Gb/s", false, 0,
        1'000'000},
       {"seed", Kind::Integer, "Of isolate: plan the rounds of this number again", false, 1,
        kAnySequence},
       {"until", Kind::Text,
        "Of isolate: cleared (39 rounds), or good (16 rounds: nobody is cleared); default: "
        "cleared"},
       {"nodes", Kind::Hostlist,
        "These only; default: all. Of erase: one; of bmc-password and bmc-certificate they are "
        "named"},
       kConfirm,
       kAfterRestart,
       {"disks", Kind::Texts, "Of erase: serials; default: all that are built in"},
       {"reason", Kind::Text, "Of erase and firmware-retry: why; kept in the log"},
       {"confirm_node", Kind::Text, "Of erase: the node again"},
       {"driver", Kind::Text, "Of rollout: a declared driver for the one of its kind"},
       {"change", Kind::Text, "Of rollout: a fragment of an inventory (with the verb admin)"},
       {"canaries", Kind::Integer, "Of rollout: nodes of the first wave", false, 1, 10'000},
       {"on_failure", Kind::Text, "Of rollout: halt or roll-back"},
       {"on_inconclusive", Kind::Text, "Of rollout: halt or continue"},
       {"wipe_reason", Kind::Text,
        "Of rollout: why each disk may be wiped once (with the verb wipe)"},
       {"rollback", Kind::Text, "Of rollout: undo this rollout, by its id"},
       {"image", Kind::Text, "Of image-build: a name, or ramos; default: all that is missing"},
       {"over", Kind::Text, "Of image-build: the digest whose layout goes on, or none"},
       {"gates", Kind::Texts, "Of validate: names; default: all of the nodes' profiles"},
       {"synchronized_load", Kind::Boolean,
        "Of validate: each rack's nodes begin a gate at one moment"},
       kMeantInventory},
      refTo("Run"), submit, 202);
  routes.back().knows_its_key = true;
  add("POST", "/runs/{id}/cancel", Verb::Run, "End it; nothing new begins", {}, refTo("Run"),
      ordered(app::cancelRun));
  add("POST", "/runs/{id}/pause", Verb::Run, "Begin nothing new", {}, refTo("Run"),
      ordered(app::pauseRun));
  add("POST", "/runs/{id}/resume", Verb::Run, "Go on",
      {{"accept", Kind::Text,
        "Of a halted rollout: why it goes on although the wave's gate failed; recorded in the "
        "log"}},
      refTo("Run"), resumed);
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
