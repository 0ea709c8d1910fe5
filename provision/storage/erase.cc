// SPDX-License-Identifier: Apache-2.0
#include "provision/storage/erase.h"

#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "provision/agent_task.h"
#include "provision/facets.h"
#include "provision/provision.h"
#include "provision/restart.h"
#include "wire/erase_disks.h"

#include "base/log.h"
#include "inventory/model/cluster.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace muster::provision {

using lifecycle::Again;
using lifecycle::Blocked;
using lifecycle::Done;
using lifecycle::Fact;
using lifecycle::Outcome;
using lifecycle::Subject;
using nlohmann::json;
using std::chrono::seconds;
using wire::TaskKind;

namespace {

constexpr const char* kRequestsKey = "erase.requests";
constexpr seconds kMostErase{7 * 24 * 3600};    ///< a task may take no longer (agent/protocol)
constexpr seconds kBootsLimit{2 * 3600};        ///< beside the task: into the RAM OS
constexpr seconds kOwnMethodsLimit{48 * 3600};  ///< the disk's own methods, one after the other,
                                                ///< each to its limit (agent/imaging/erase.cc)
constexpr double kSlowBytesPerSecond =
    80e6;  ///< of a turning disk that shares its way with many; all are overwritten at once
constexpr seconds kEraseExpected{1800};

std::string reportKey(const NodeName& node) { return "erase.report." + node.str(); }
std::string completeValue(const std::string& id) { return "complete:" + id; }

Result<std::map<NodeName, EraseRequest>> parseRequests(const std::string& words) {
  std::map<NodeName, EraseRequest> requests;
  const json object = jsonOrNone(words, kKeptJson);
  if (!object.is_object())
    return fail(ErrorCode::Corrupt, "the erasure requests in the store are not a JSON object");
  for (const auto& [node, entry] : object.items()) {
    EraseRequest request{textOf(entry, "id"),
                         textOf(entry, "serial"),
                         {},
                         textOf(entry, "who"),
                         textOf(entry, "reason")};
    for (const json& disk : entry.value("disks", json::array()))
      if (disk.is_string()) request.disks.push_back(disk.get<std::string>());
    requests.emplace(NodeName(node), std::move(request));
  }
  return requests;
}

std::string printRequests(const std::map<NodeName, EraseRequest>& requests) {
  json object = json::object();
  for (const auto& [node, request] : requests)
    object[node.str()] = {{"id", request.id},
                          {"serial", request.serial},
                          {"disks", request.disks},
                          {"who", request.who},
                          {"reason", request.reason}};
  return jsonText(object);
}

Result<void> changeRequests(lifecycle::Store& store,
                            const std::function<void(std::map<NodeName, EraseRequest>&)>& change) {
  TRY(before, store.getValue(kRequestsKey));
  TRY(requests, parseRequests(before.value_or("{}")));
  change(requests);
  TRY(set, store.exchangeValue(kRequestsKey, before, printRequests(requests)));
  if (!set)
    return fail(Error(ErrorCode::Conflict,
                      "another controller asks for an erasure at this moment; try again")
                    .retryable(true));
  return {};
}

/// "complete:ID", "incomplete:ID"; empty when there is no report of this request.
std::string valueOf(const std::optional<std::string>& report, const std::string& id) {
  const json object = jsonOrNone(report.value_or("{}"), kKeptJson);
  if (!object.is_object() || textOf(object, "request") != id) return {};
  const json inner = object.value("report", json::object());
  return inner.value("complete", false) ? completeValue(id) : "incomplete:" + id;
}

lifecycle::FacetRef facetOf(const NodeName& node) { return {Subject(node), facet(kErased)}; }

/// What an earlier run left in the journal.
Result<std::optional<lifecycle::Intent>> openErasure(lifecycle::Store& store,
                                                     const NodeName& node) {
  TRY(intents, store.openIntents());
  const auto found = std::find_if(
      intents.begin(), intents.end(),
      [&](const lifecycle::Intent& intent) { return intent.action.facet == facetOf(node); });
  return found == intents.end() ? std::nullopt : std::optional(*found);
}

lifecycle::Goal goalOf(const NodeName& node, const EraseRequest& request) {
  return {facetOf(node),
          completeValue(request.id),
          lifecycle::Disruption::Wipe,
          kEraseExpected,
          kMostErase + kBootsLimit,
          {},
          fmt::format("{} asked to erase {}: {}", request.who,
                      request.disks.empty() ? "all its disks"
                                            : fmt::format("{} of its disks", request.disks.size()),
                      request.reason)};
}

class ErasureDraft final : public lifecycle::Phase {
 public:
  ErasureDraft(NodeName node, EraseRequest request)
      : node_(std::move(node)), request_(std::move(request)) {}

  std::string_view name() const override { return kErasePhase; }
  bool isOnDemand() const override { return true; }
  std::vector<lifecycle::Goal> goals(const inventory::Cluster&, const Subject& subject,
                                     const lifecycle::FactSet&) const override {
    if (subject != Subject(node_)) return {};
    return {goalOf(node_, request_)};
  }
  Async<std::vector<Fact>> observe(Subject) override { co_return std::vector<Fact>(); }
  Async<std::vector<Fact>> verify(lifecycle::Action) override { co_return std::vector<Fact>(); }
  Async<Outcome> act(lifecycle::Action, lifecycle::ActContext&) override {
    co_return Outcome(Blocked{"this erasure is only planned"});
  }

 private:
  const NodeName node_;
  const EraseRequest request_;
};

class ErasePhase final : public Erasures {
 public:
  ErasePhase(ProvisionDeps deps, lifecycle::Store& store)
      : deps_(std::move(deps)),
        store_(store),
        restarts_(deps_.bmcs, deps_.agents, deps_.netboot, deps_.clock) {
    if (auto open = eraseRequests(store_))
      asked_ = std::move(*open);
    else
      logWarning("erase", "the erasure requests cannot be read: {}", open.error().str());
  }

  std::string_view name() const override { return kErasePhase; }
  bool isOnDemand() const override { return true; }

  void ask(const NodeName& node, const EraseRequest& request) override { asked_[node] = request; }
  void forget(const NodeName& node) override { asked_.erase(node); }

  std::vector<lifecycle::Goal> goals(const inventory::Cluster& cluster, const Subject& subject,
                                     const lifecycle::FactSet&) const override {
    if (subject.isCluster() || !cluster.findNode(subject.node())) return {};
    const auto asked = asked_.find(subject.node());
    if (asked == asked_.end()) return {};
    return {goalOf(subject.node(), asked->second)};
  }

  Async<std::vector<Fact>> observe(Subject subject) override { co_return factsOf(subject); }
  Async<std::vector<Fact>> verify(lifecycle::Action action) override {
    co_return factsOf(action.facet.subject);
  }

  Async<Outcome> act(lifecycle::Action action, lifecycle::ActContext& context) override {
    const auto node = action.facet.subject.node();
    const auto asked = asked_.find(node);
    if (asked == asked_.end())
      co_return Outcome(Blocked{fmt::format("the request to erase {} was cancelled", node.str())});
    const EraseRequest request = asked->second;
    CO_TRY(note, TaskNote::parse(context.operation()));
    if (!note) {
      CO_TRY(open, eraseRequests(store_));
      if (const auto still = open.find(node);
          still == open.end() || still->second.id != request.id) {
        asked_.erase(node);
        co_return Outcome(Blocked{fmt::format("the erasure of {} was taken back", node.str())});
      }
    }
    CO_TRY(wait,
           co_await restarts_.intoRam(node, note ? Restarts::Work::Begun : Restarts::Work::None));
    if (wait) co_return Outcome(*wait);
    const auto params = [&request](bool wipe_allowed) {
      return toJson(wire::EraseParams{request.serial, request.disks, wipe_allowed});
    };
    CO_TRY(step, co_await stepTask(deps_.agents, node, TaskKind::EraseDisks, limitOf(node, request),
                                   context, params));
    if (const auto* again = std::get_if<Again>(&step)) co_return Outcome(*again);
    if (const auto* refused = std::get_if<Refusal>(&step)) co_return Outcome(Blocked{refused->why});
    co_return keepReport(node, request, std::get<std::string>(step), context);
  }

 private:
  /// The largest of the disks that are meant, overwritten slowly. The agent stops before and says
  /// how far it came.
  seconds limitOf(const NodeName& node, const EraseRequest& request) const {
    const auto state = deps_.agents.state(node);
    std::uint64_t largest = 0;
    for (const auto& disk : state ? state->hardware.disks : std::vector<wire::Disk>())
      if (request.disks.empty() ||
          std::find(request.disks.begin(), request.disks.end(), disk.serial) != request.disks.end())
        largest = std::max(largest, disk.size_bytes);
    if (largest == 0) return kMostErase;
    return std::min(kMostErase,
                    kOwnMethodsLimit + seconds(static_cast<std::int64_t>(
                                           static_cast<double>(largest) / kSlowBytesPerSecond)));
  }

  std::vector<Fact> factsOf(const Subject& subject) const {
    if (subject.isCluster()) return {};
    const auto asked = asked_.find(subject.node());
    if (asked == asked_.end()) return {};
    const auto report = erasureReport(store_, subject.node());
    const std::string value = report ? valueOf(*report, asked->second.id) : std::string();
    return {{subject,
             facet(kErased),
             value.empty() ? "not-yet" : value,
             deps_.clock.now(),
             "report in the store",
             {}}};
  }

  /// The report is kept before anything else is said of it, whatever is in it.
  Result<Outcome> keepReport(const NodeName& node, const EraseRequest& request,
                             const std::string& result, lifecycle::ActContext& context) {
    json report = jsonOrNone(result, kAgentJson);
    if (!report.is_object())
      return fail(ErrorCode::Corrupt,
                  "the report of the erasure of " + node.str() + " is not a JSON object");
    const json kept{{"node", node.str()},
                    {"request", request.id},
                    {"who", request.who},
                    {"reason", request.reason},
                    {"ended", muster::toString(deps_.clock.now())},
                    {"report", report}};
    TRY_OK(store_.putValue(reportKey(node), jsonText(kept)));
    if (report.value("complete", false)) {
      TRY_OK(forgetErasure(store_, node, request.id));
      return Outcome(Done{});
    }
    std::vector<std::string> failed;
    for (const json& disk : report.value("disks", json::array())) {
      if (!textOf(disk, "method").empty()) continue;
      failed.push_back(textOf(disk, "disk"));
      lifecycle::Finding finding;
      finding.facet = {Subject(node), facet(kErased)};
      finding.text = fmt::format("{} of {} is NOT erased: {}", textOf(disk, "disk"), node.str(),
                                 textOf(disk, "fault"));
      finding.evidence = jsonText(disk);
      finding.what_to_do =
          "this disk still holds data: take it out and destroy it, or repair what is wrong and run "
          "`muster erase " +
          node.str() + "` again";
      finding.at = deps_.clock.now();
      context.finding(std::move(finding));
    }
    return Outcome(Blocked{fmt::format(
        "{} of {} disks of {} are not erased; see `muster erase {} --report`", failed.size(),
        report.value("disks", json::array()).size(), node.str(), node.str())});
  }

  ProvisionDeps deps_;
  lifecycle::Store& store_;
  Restarts restarts_;
  std::map<NodeName, EraseRequest> asked_;
};

}  // namespace

Result<std::map<NodeName, EraseRequest>> eraseRequests(lifecycle::Store& store) {
  TRY(stored, store.getValue(kRequestsKey));
  return parseRequests(stored.value_or("{}"));
}

Result<void> askForErasure(lifecycle::Store& store, const NodeName& node,
                           const EraseRequest& request) {
  return changeRequests(store, [&](auto& requests) { requests[node] = request; });
}

Result<void> forgetErasure(lifecycle::Store& store, const NodeName& node, const std::string& id) {
  return changeRequests(store, [&](auto& requests) {
    if (const auto at = requests.find(node); at != requests.end() && at->second.id == id)
      requests.erase(at);
  });
}

Result<bool> isComplete(lifecycle::Store& store, const NodeName& node, const std::string& id) {
  TRY(report, erasureReport(store, node));
  return valueOf(report, id) == completeValue(id);
}

Result<EraseRequest> requestToGoOnWith(lifecycle::Store& store, const NodeName& node,
                                       EraseRequest fresh) {
  TRY(open, eraseRequests(store));
  if (const auto same = open.find(node); same != open.end() && same->second.disks == fresh.disks &&
                                         same->second.serial == fresh.serial) {
    TRY(complete, isComplete(store, node, same->second.id));
    if (!complete) fresh.id = same->second.id;
  }
  TRY(intent, openErasure(store, node));
  if (intent && intent->action.to != completeValue(fresh.id))
    return fail(ErrorCode::Conflict,
                fmt::format("the journal has another erasure of {} open; `muster apply --nodes {}` "
                            "ends it, `muster erase {} --report` shows what it did",
                            node.str(), node.str(), node.str()));
  return fresh;
}

Result<void> beginErasure(lifecycle::Store& store, const lifecycle::Plan& plan,
                          const NodeName& node, const EraseRequest& request, WallTime at) {
  const auto erases = [&](const lifecycle::Action& action) {
    return action.facet == facetOf(node) && action.blocked.empty();
  };
  if (std::none_of(plan.actions.begin(), plan.actions.end(), erases))
    return fail(ErrorCode::Conflict,
                fmt::format("the plan erases nothing of {}; nothing was done", node.str()));
  TRY(intent, openErasure(store, node));
  TRY_OK(askForErasure(store, node, request));
  if (intent && (intent->uses_wipe || !intent->operation.empty())) return {};
  return store.grantWipe(node, "muster erase: " + request.reason, at);
}

namespace {

/// What says that the node has been told to erase.
Result<void> checkNotBegun(lifecycle::Store& store, const NodeName& node,
                           const EraseRequest& request,
                           const std::optional<lifecycle::Intent>& intent) {
  TRY(report, erasureReport(store, node));
  const bool reported = !valueOf(report, request.id).empty();
  if (!reported && (!intent || intent->operation.empty())) return {};
  return fail(
      ErrorCode::Conflict,
      fmt::format(
          "the erasure of {0} has begun{1}: what it has reached is gone, and `muster erase {0} "
          "--report` says of what nothing is known yet. To end it: muster apply --nodes {0}. "
          "To keep what it has not reached: muster bmc power {0} off, and take the disks out",
          node.str(), intent ? " at " + muster::toString(intent->opened_at) : ""));
}

/// The permission that was given for this erasure and not used: an intent uses it up, as only
/// intents can.
Result<lifecycle::Intent> intentWithPermission(lifecycle::Store& store, const NodeName& node,
                                               const EraseRequest& request, WallTime at) {
  lifecycle::Intent intent;
  intent.id = "taken-back." + io::randomToken(9);
  intent.action.facet = facetOf(node);
  intent.action.id = node.str() + "/" + std::string(kErased);
  intent.action.phase = kErasePhase;
  intent.action.to = completeValue(request.id);
  intent.uses_wipe = true;
  intent.opened_at = at;
  TRY_OK(store.openIntent(intent));
  return intent;
}

}  // namespace

Result<std::string> cancelErasure(lifecycle::Store& store, const NodeName& node,
                                  const std::string& who, WallTime at) {
  TRY(requests, eraseRequests(store));
  const auto asked = requests.find(node);
  TRY(intent, openErasure(store, node));
  if (asked == requests.end() && !intent)
    return fail(ErrorCode::NotFound,
                fmt::format("no erasure of {} is requested; nothing was changed", node.str()));
  const EraseRequest request = asked == requests.end() ? EraseRequest{} : asked->second;
  TRY_OK(checkNotBegun(store, node, request, intent));
  TRY(allowed, store.wipeGrants());
  const bool was_open = intent.has_value();
  if (!was_open && std::find(allowed.begin(), allowed.end(), node) != allowed.end()) {
    TRY(with, intentWithPermission(store, node, request, at));
    intent = std::move(with);
  }
  // A kill from here on leaves what was asked for as it was, or taken back: never a permission
  // without a request.
  if (intent)
    TRY_OK(store.closeIntent(intent->id, lifecycle::IntentState::Abandoned, "taken back by " + who,
                             at));
  if (asked != requests.end()) TRY_OK(forgetErasure(store, node, request.id));
  std::string words =
      fmt::format("the erasure of {} is taken back, nothing was erased", node.str());
  if (asked != requests.end())
    words += fmt::format(" ({} had asked: {})", request.who, request.reason);
  if (was_open)
    words +=
        fmt::format("; it may be in its RAM OS by now: `muster apply --nodes {}` starts its system",
                    node.str());
  return words;
}

Result<std::optional<std::string>> withdrawErasure(lifecycle::Store& store, const NodeName& node,
                                                   const std::string& id, const std::string& who,
                                                   WallTime at) {
  TRY(requests, eraseRequests(store));
  TRY(intent, openErasure(store, node));
  const auto asked = requests.find(node);
  const bool is_asked = asked != requests.end() && asked->second.id == id;
  const bool is_open = intent && intent->action.to == completeValue(id);
  if (!is_asked && !is_open) return std::optional<std::string>();
  auto taken = cancelErasure(store, node, who, at);
  if (taken) return std::optional(std::move(*taken));
  const auto code = taken.error().code();
  if (code == ErrorCode::Conflict && !taken.error().canRetry()) return std::optional<std::string>();
  return std::unexpected(std::move(taken).error());
}

std::unique_ptr<lifecycle::Phase> makeErasureDraft(const NodeName& node,
                                                   const EraseRequest& request) {
  return std::make_unique<ErasureDraft>(node, request);
}

Result<std::optional<std::string>> erasureReport(lifecycle::Store& store, const NodeName& node) {
  return store.getValue(reportKey(node));
}

std::optional<std::string> whyNotErase(const inventory::Cluster& cluster, const NodeName& node,
                                       const lifecycle::FactSet& facts) {
  const auto pool = facts.value(Subject(node), FacetName(std::string(lifecycle::kPoolFacet)));
  const auto* declared = cluster.findNode(node);
  const bool pooled = declared && !cluster.profileOf(*declared).pool.empty();
  if (!pooled && !pool) return std::nullopt;
  if (!pool)
    return fmt::format("whether {} takes jobs is not known: its pool did not answer", node.str());
  if (pool == "out" || pool == "drained") return std::nullopt;
  return fmt::format(
      "{} is '{}' in its pool and may hold jobs; take it out first: muster quarantine add {} "
      "--reason …, then muster apply --nodes {}",
      node.str(), *pool, node.str(), node.str());
}

std::string erasureText(const std::string& words) {
  const json object = jsonOrNone(words, kKeptJson);
  if (!object.is_object()) return "the report cannot be read\n";
  const json report = object.value("report", json::object());
  std::string out = fmt::format("{} ({}), {}, asked by {}: {}\n", textOf(object, "node"),
                                textOf(report, "node_serial"), textOf(object, "ended"),
                                textOf(object, "who"), textOf(object, "reason"));
  for (const json& disk : report.value("disks", json::array())) {
    const bool erased = !textOf(disk, "method").empty();
    out += fmt::format(
        "  {:<44} {}\n", textOf(disk, "disk"),
        erased ? fmt::format("erased by {} ({}), {} places read back, {:.0f} s",
                             textOf(disk, "method"), textOf(disk, "level"),
                             disk.value("places_checked", 0), disk.value("seconds", 0.0))
               : "NOT ERASED: " + textOf(disk, "fault"));
    for (const json& tried : disk.value("tried", json::array()))
      out += fmt::format("      tried {}\n", tried.is_string() ? tried.get<std::string>() : "");
  }
  for (const json& left : report.value("left", json::array()))
    out += fmt::format("  {:<44} left as it is\n", left.is_string() ? left.get<std::string>() : "");
  return out + (report.value("complete", false) ? "  complete\n" : "  NOT COMPLETE\n");
}

std::unique_ptr<Erasures> makeErasePhase(ProvisionDeps deps, lifecycle::Store& store) {
  return std::make_unique<ErasePhase>(std::move(deps), store);
}

}  // namespace muster::provision
