// SPDX-License-Identifier: Apache-2.0
// Findings, events, rollouts, images, and what people keep out of the pools.
#include "api/answers.h"
#include "api/schema.h"
#include "app/images.h"
#include "app/nodes/pool_holds.h"
#include "app/plans/rollouts.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "inventory/parse/hostlist.h"
#include "lifecycle/model/json.h"
#include "lifecycle/rollout/record.h"

#include <algorithm>
#include <array>
#include <set>

namespace muster::api {
namespace {

using lifecycle::RolloutNodeState;
using lifecycle::RolloutRecord;
using lifecycle::Subject;

constexpr std::int64_t kEventsLimit = 200, kMaxEvents = 5'000;

bool isSeverity(std::string_view word) {
  return std::ranges::any_of(
      std::array{Severity::Info, Severity::Warning, Severity::Error},
      [word](Severity severity) { return lifecycle::severityWord(severity) == word; });
}

Reply findings(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  std::set<std::string> named;
  if (const auto nodes = call.text("nodes"); nodes == Subject::kCluster) {
    named.emplace(nodes);
  } else if (!nodes.empty()) {
    TRY_OK(requireInScope(reader, call, nodes));
    TRY(names, inventory::expandHostlist(nodes));
    named.insert(names.begin(), names.end());
  }
  TRY(found, reader.store().findings(nullptr));
  std::vector<nlohmann::json> items;
  const auto severity = call.text("severity"), source = call.text("source");
  if (!severity.empty() && !isSeverity(severity))
    return std::unexpected(Problem(400, "invalid-input",
                                   fmt::format("\"{}\" is no severity", printable(severity)),
                                   "there are: info, warning, error"));
  for (const auto& finding : found) {
    const auto& subject = finding.facet.subject.str();
    if ((!named.empty() && !named.contains(subject)) || !sees(session->cluster(), call, subject) ||
        (!severity.empty() && lifecycle::severityWord(finding.severity) != severity) ||
        (!source.empty() && finding.source != source))
      continue;
    items.push_back(lifecycle::toJson(finding));
  }
  return page(call, std::move(items));
}

Reply events(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  const auto limit = static_cast<std::size_t>(call.integer("limit", kEventsLimit));
  const auto name = call.text("subject");
  const auto subject = Subject::parse(name);
  const auto* of = name.empty() ? nullptr : &subject;
  const bool goes_on = !call.text("after").empty();
  const auto after = call.integer("after", 0);
  if (of && !sees(session->cluster(), call, name))  // as one that does not exist, `last` too
    return Answer{200, {{"items", nlohmann::json::array()}, {"last", after}}};
  TRY(found,
      goes_on ? reader.store().events(after, limit, of) : reader.store().lastEvents(limit, of));
  auto items = nlohmann::json::array();
  auto last = after;
  for (const auto& event : found) {
    last = std::max(last, event.sequence);
    if (sees(session->cluster(), call, event.subject.str()))
      items.push_back(lifecycle::toJson(event));
  }
  Answer out{200, {{"items", std::move(items)}, {"last", last}}};
  return out;
}

nlohmann::json briefOf(const lifecycle::Rollout& rollout) {
  return {{"id", rollout.id},
          {"state", toString(rollout.state)},
          {"at", muster::toString(rollout.at)},
          {"user", rollout.user},
          {"host", rollout.host},
          {"command", rollout.command},
          {"is_open", rollout.isOpen()}};
}

/// Those that may lie over the inventory; the newest also when it does no more.
Reply rollouts(SiteReader& reader, const Call&) {
  TRY(ids, RolloutRecord::list(reader.store()));
  if (const auto newest = RolloutRecord::newest(reader.store());
      newest && std::ranges::find(ids, newest->rollout().id) == ids.end())
    ids.push_back(newest->rollout().id);
  std::ranges::reverse(ids);
  auto items = nlohmann::json::array();
  for (const auto& id : ids) {
    TRY(record, RolloutRecord::open(reader.store(), id));
    items.push_back(briefOf(record.rollout()));
  }
  return list(std::move(items));
}

Reply rollout(SiteReader& reader, const Call& call) {
  static constexpr std::array kStates{
      RolloutNodeState::Waiting,   RolloutNodeState::Started,  RolloutNodeState::Done,
      RolloutNodeState::Failed,    RolloutNodeState::Skipped,  RolloutNodeState::Untouched,
      RolloutNodeState::Returning, RolloutNodeState::Returned, RolloutNodeState::RollbackFailed};
  const auto id = call.text("id");
  TRY(record, id == "current" ? RolloutRecord::current(reader.store())
                              : RolloutRecord::open(reader.store(), id));
  TRY(order, record.order());
  Answer out{200, lifecycle::toJson(record.rollout())};
  out.body["at"] = muster::toString(record.rollout().at);
  out.body["order"] = {{"order", toString(order.order)}, {"by", order.by}};
  auto& nodes = out.body["nodes"] = nlohmann::json::object();
  for (const auto& [node, progress] : record.progress())
    nodes[node.str()] = lifecycle::toJson(progress);
  auto& counts = out.body["counts"] = nlohmann::json::object();
  for (const auto state : kStates) counts[std::string(toString(state))] = record.count(state);
  return out;
}

Reply images(SiteReader& reader, const Call&) {
  TRY(found, app::listImages(reader.options()));
  auto items = nlohmann::json::array();
  for (const auto& image : found.images)
    items.push_back({{"image", image.name},
                     {"digest", image.digest},
                     {"key", image.key},
                     {"predecessor", image.predecessor},
                     {"size_bytes", image.size_bytes},
                     {"pack_bytes", image.pack_bytes},
                     {"declared", image.declared},
                     {"profiles", image.profiles},
                     {"signers", image.signers},
                     {"fault", image.fault}});
  auto out = list(std::move(items));
  out.body["not_built"] = found.not_built;
  out.body["site_key_id"] = found.site_key_id;
  return out;
}

Reply quarantine(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(entries, lifecycle::Quarantine(reader.store()).entries());
  auto items = nlohmann::json::array();
  for (const auto& [node, entry] : entries)
    if (sees(session->cluster(), call, node.str())) items.push_back(quarantineJson(node, entry));
  return list(std::move(items));
}

Reply holds(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(found, app::poolHolds(reader.options()));
  auto items = nlohmann::json::array();
  for (const auto& hold : found.holds)
    if (sees(session->cluster(), call, hold.node.str())) items.push_back(holdJson(hold));
  std::vector<std::string> unread;
  for (const auto& node : found.unread)
    if (sees(session->cluster(), call, node.str())) unread.push_back(node.str());
  auto out = list(std::move(items));
  out.body["unread"] = inventory::foldHostlist(std::move(unread));
  return out;
}

Reply wipeGrants(SiteReader& reader, const Call& call) {
  TRY(session, reader.session());
  TRY(found, reader.store().wipeGrants());
  auto items = nlohmann::json::array();
  for (const auto& node : found)
    if (sees(session->cluster(), call, node.str())) items.push_back({{"node", node.str()}});
  return list(std::move(items));
}

}  // namespace

void addRecordRoutes(std::vector<ApiRoute>& routes) {
  const nlohmann::json last = {{"last", {{"type", "integer"}, {"minimum", 0}}}};
  const auto add = [&](std::string path, Reach reach, std::string_view summary,
                       std::vector<Field> query, nlohmann::json schema, Act act) {
    routes.push_back({"GET",
                      std::move(path),
                      Verb::Look,
                      reach,
                      summary,
                      {},
                      std::move(query),
                      {},
                      std::move(schema),
                      200,
                      std::move(act)});
  };
  add("/findings", Reach::Scoped, "What is wrong, newest first",
      withPages({{"nodes", Kind::Hostlist, "Of these nodes, or @cluster"},
                 {"severity", Kind::Text, "info, warning or error"},
                 {"source", Kind::Text, "Who raised it"}}),
      listOf("Finding"), findings);
  const Field after{"after", Kind::Integer, "Behind this sequence number", false, 0, kAnySequence};
  const Field subject{"subject", Kind::Text, "A node, or @cluster"};
  add("/events", Reach::Scoped, "The log, oldest first; without `after` its newest entries",
      {after, {"limit", Kind::Integer, "How many at most", false, 1, kMaxEvents}, subject},
      listOf("Event", last), events);
  add("/events/stream", Reach::Scoped, "The log as it goes on (text/event-stream)",
      {after, subject}, nlohmann::json(), {});
  routes.back().is_stream = true;
  routes.back().content_type = "text/event-stream";
  add("/rollouts", Reach::Site, "Rollouts, newest first", {}, listOf("Rollout"), rollouts);
  add("/rollouts/{id}", Reach::Site, "How far a rollout is", {}, refTo("RolloutDetail"), rollout);
  routes.back().path_fields = {{"id", Kind::Text, "A rollout, or `current`", true}};
  add("/images", Reach::Site, "Images that were built or imported", {},
      listOf("Image", {{"not_built", {{"type", "array"}, {"items", {{"type", "string"}}}}},
                       {"site_key_id", {{"type", "string"}}}}),
      images);
  add("/quarantine", Reach::Scoped, "Nodes in quarantine", {}, listOf("Quarantine"), quarantine);
  add("/holds", Reach::Scoped, "Nodes that people have drained, in their words", {},
      listOf("Hold", {{"unread", {{"type", "string"}}}}), holds);
  add("/wipe-grants", Reach::Scoped, "Nodes whose disks may be overwritten once", {},
      listOf("WipeGrant"), wipeGrants);
}

}  // namespace muster::api
