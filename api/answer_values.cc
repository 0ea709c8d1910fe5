// SPDX-License-Identifier: Apache-2.0
#include "api/answer_values.h"

#include "api/answer_members.h"
#include "base/json_output.h"
#include "lifecycle/model/json.h"

#include <algorithm>
#include <array>
#include <limits>

namespace muster::api {
namespace {

using nlohmann::json;

std::optional<Severity> parseSeverity(const std::string& text) {
  for (const auto severity : {Severity::Info, Severity::Warning, Severity::Error})
    if (lifecycle::severityWord(severity) == text) return severity;
  return std::nullopt;
}

/// As lifecycle::toJson puts it: JSON as it is, other text as text.
std::string evidenceOf(const json& object) {
  if (!object.is_object()) return {};
  const auto found = object.find("evidence");
  if (found == object.end()) return {};
  return found->is_string() ? found->get<std::string>() : jsonText(*found);
}

template <class Enum>
std::optional<Enum> wordOf(const std::string& text, std::initializer_list<Enum> all) {
  for (const auto each : all)
    if (toString(each) == text) return each;
  return std::nullopt;
}

}  // namespace

Result<app::NodeStatus> nodeStatusFrom(const json& source) {
  Members read(source, "node");
  app::NodeStatus out;
  out.node = read.text("node");
  out.state = read.text("state");
  out.pool = read.text("pool");
  out.image = read.text("image");
  out.certificate = read.text("certificate");
  out.rack = read.text("rack");
  out.profile = read.text("profile");
  out.findings = read.count("findings");
  out.stale = read.items("stale", [](const json& each) -> Result<lifecycle::Unread> {
    Members member(each, "node.stale");
    lifecycle::Unread unread{member.text("what"), member.text("code"), member.text("reason"),
                             member.time("since"), std::nullopt};
    if (const auto last = member.time("last_read", kMayBeAbsent); last != WallTime{})
      unread.last_read = last;
    return member.as(std::move(unread));
  });
  return read.as(std::move(out));
}

Result<app::SiteStatus> siteStatusFrom(const json& source) {
  Members read(source, "site");
  app::SiteStatus out;
  out.several_controllers = read.flag("several_controllers");
  out.overrides = read.texts("overrides");
  if (read.field("access_problems", kMayBeAbsent))  // an older server says none
    out.access_problems = read.texts("access_problems");
  Members monitor(read.object("monitor", kAnswerItems), "site.monitor");
  out.monitor.running = monitor.flag("running");
  out.monitor.tripped = monitor.flag("breaker_open");
  out.monitor.text = monitor.text("text");
  out.monitor.holder = monitor.text("holder");
  if (const auto good = monitor.finish(); !good) read.take(good.error());
  if (const auto* leader = read.field("leader", kMayBeAbsent)) {
    Members member(*leader, "site.leader");
    lifecycle::Leader found;
    found.holder = member.text("holder");
    found.address = member.text("address");
    found.api_url = member.text("url", kMayBeAbsent);
    if (const auto good = member.finish(); !good) read.take(good.error());
    out.leader = std::optional(std::move(found));
  }
  return read.as(std::move(out));
}

Result<lifecycle::Event> eventFrom(const json& source) {
  Members read(source, "event");
  lifecycle::Event out;
  out.sequence = static_cast<std::int64_t>(read.unsignedNumber("sequence", kAnswerNumber));
  out.at = read.time("at", kMayBeAbsent);
  // One that a newer muster has invented is shown as what it says.
  out.kind = lifecycle::parseEventKind(read.text("kind")).value_or(lifecycle::EventKind::Note);
  out.subject = lifecycle::Subject::parse(read.text("subject", kMayBeAbsent));
  out.action_id = read.text("action", kMayBeAbsent);
  out.text = read.text("text");
  out.fraction = read.number("fraction", -1);
  return read.as(std::move(out));
}

Result<lifecycle::Finding> findingFrom(const json& source) {
  Members read(source, "finding");
  lifecycle::Finding out;
  out.facet = {lifecycle::Subject::parse(read.text("subject")), FacetName(read.text("facet"))};
  out.severity = read.word("severity", parseSeverity);
  out.text = read.text("text");
  out.what_to_do = read.text("what_to_do");
  out.source = read.text("source", kMayBeAbsent);
  out.at = read.time("at", kMayBeAbsent);
  out.evidence = evidenceOf(source);
  return read.as(std::move(out));
}

Result<lifecycle::Explanation> explanationFrom(const json& source) {
  Members read(source, "explanation");
  lifecycle::Explanation out;
  out.subject = lifecycle::Subject::parse(read.text("subject"));
  out.word = read.text("word");
  out.state = read.text("state");
  out.facet = read.text("facet");
  out.expected = read.text("expected");
  out.observed = read.text("observed");
  out.last_evidence = read.text("last_evidence");
  out.next_step = read.text("next_step");
  out.rollout = read.text("rollout");
  out.console = read.texts("console");
  out.unmet = read.texts("unmet");
  out.stale = read.texts("stale");
  out.findings = read.items("findings", findingFrom);
  out.recent = read.items("events", eventFrom);
  return read.as(std::move(out));
}

Result<app::PoolHold> poolHoldFrom(const json& source) {
  Members read(source, "hold");
  app::PoolHold out{NodeName(read.text("node")), read.text("hold"), read.time("seen_at"),
                    read.flag("overridden"), read.text("overridden_by")};
  return read.as(std::move(out));
}

Result<lifecycle::PlanImpact> impactFrom(const json& source) {
  using lifecycle::DomainKind;
  Members read(source, "impact");
  lifecycle::PlanImpact out;
  out.actions = read.count("actions");
  out.blocked = read.count("blocked");
  out.subjects = read.count("subjects");
  out.taken_out = read.nodes("taken_out");
  out.wiped = read.nodes("wiped");
  out.reset = read.nodes("reset");
  out.at_least = std::chrono::seconds(read.unsignedNumber("at_least_s", kAnswerNumber));
  out.domains = read.items("domains", [](const json& each) -> Result<lifecycle::DomainImpact> {
    Members member(each, "impact.domain");
    lifecycle::DomainImpact domain;
    domain.domain.kind = member.word("kind", [](const std::string& text) {
      return wordOf<DomainKind>(
          text, {DomainKind::Pool, DomainKind::Rack, DomainKind::Su, DomainKind::Leaf});
    });
    domain.domain.name = member.text("name");
    domain.taken_out = member.count("taken_out");
    domain.already_out = member.count("already_out");
    domain.size = member.count("size");
    domain.limit = member.count("limit");
    return member.as(std::move(domain));
  });
  return read.as(std::move(out));
}

Result<app::RolloutStatus> rolloutStatusFrom(const json& source) {
  using lifecycle::Order;
  Members read(source, "rollout");
  app::RolloutStatus out;
  const auto at = read.time("at");
  const auto& nodes = read.object("nodes", kAnswerItems);
  Members order(read.object("order", kAnswerItems), "rollout.order");
  out.order.order = order.word("order", [](const std::string& text) {
    return wordOf<Order>(text, {Order::None, Order::Pause, Order::Abort});
  });
  out.order.by = order.text("by");
  if (const auto good = order.finish(); !good) read.take(good.error());
  if (const auto good = read.as(0); !good) return std::unexpected(good.error());
  auto kept = source;  // as the store has it, where times are numbers
  kept["at"] = at.time_since_epoch().count();
  TRY(rollout, lifecycle::rolloutFromJson(jsonText(kept)));
  TRY(progress, lifecycle::progressFromJson(jsonText(json{{"nodes", nodes}})));
  out.rollout = std::move(rollout);
  out.progress = std::move(progress);
  return std::move(out);
}

Result<lifecycle::Run> runFrom(const json& source) {
  using namespace lifecycle;
  Members read(source, "run");
  Run out;
  out.id = read.text("id");
  out.kind = read.word("kind", parseRunKind);
  out.apply.nodes = read.text("nodes");
  out.apply.confirm = read.flag("confirm");
  out.apply.command = read.text("command", kMayBeAbsent);
  out.after_restart = read.word("after_restart", parseAfterRestart);
  out.state = read.word("state", parseRunState);
  out.reason = read.word("reason", parseRunReason);
  out.text = read.text("text");
  out.order = read.word("order", [](const std::string& text) {
    return wordOf<RunOrder>(text, {RunOrder::None, RunOrder::Pause, RunOrder::Cancel});
  });
  out.ordered_by = read.text("ordered_by");
  out.worked_on_by = read.text("worked_on_by");
  Members by(read.object("asked_by", kAnswerItems), "run.asked_by");
  out.asked_by = {by.text("principal"), by.text("way"), by.text("address"),
                  by.text("person", kMayBeAbsent)};
  if (const auto good = by.finish(); !good) read.take(good.error());
  out.asked_at = read.time("asked_at");
  out.inventory_digest = read.text("inventory_digest");
  out.plan_hash = read.text("plan_hash");
  out.planned_at = read.time("planned_at", kMayBeAbsent);
  out.subjects = read.text("subjects");
  if (const auto* impact = read.field("impact", kMayBeAbsent)) {
    auto made = impactFrom(*impact);
    if (made)
      out.impact = std::move(*made);
    else
      read.take(made.error());
  }
  out.approvals_needed = read.count("approvals_needed");
  out.approvals = read.items("approvals", [](const json& each) -> Result<RunApproval> {
    Members member(each, "run.approval");
    RunApproval approval{
        {member.text("principal"), member.text("way", kMayBeAbsent),
         member.text("address", kMayBeAbsent), member.text("person", kMayBeAbsent)},
        member.time("at"),
        member.text("plan_hash"),
        member.flag("confirmation"),
        member.text("void_because", kMayBeAbsent)};
    return member.as(std::move(approval));
  });
  out.overrides = read.items("overrides", [](const json& each) -> Result<RunOverride> {
    Members member(each, "run.override");
    RunOverride made{{member.text("principal"), member.text("way", kMayBeAbsent),
                      member.text("address", kMayBeAbsent)},
                     member.time("at"),
                     member.text("plan_hash"),
                     member.word("against", parseRunReason),
                     member.text("reason"),
                     member.text("acknowledged_by"),
                     member.time("acknowledged_at", kMayBeAbsent),
                     member.text("void_because", kMayBeAbsent)};
    return member.as(std::move(made));
  });
  if (const auto* erase = read.field("erase", kMayBeAbsent)) {
    Members member(*erase, "run.erase");
    out.erase.disks = member.texts("disks");
    out.erase.reason = member.text("reason");
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  if (const auto* validate = read.field("validate", kMayBeAbsent)) {
    Members member(*validate, "run.validate");
    out.validate.gates = member.texts("gates");
    out.validate.synchronized_load = member.flag("synchronized_load");
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  if (const auto* isolate = read.field("isolate", kMayBeAbsent)) {
    Members member(*isolate, "run.isolate");
    out.isolate.engine = member.text("engine");
    out.isolate.min_gbps = member.number("min_gbps", 0);
    out.isolate.seed = member.unsignedNumber("seed", std::numeric_limits<std::uint64_t>::max());
    out.isolate.until = member.text("until", kMayBeAbsent);
    if (out.isolate.until == "cleared") out.isolate.until.clear();  // the default, in one form
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  if (const auto* retry = read.field("firmware_retry", kMayBeAbsent)) {
    Members member(*retry, "run.firmware_retry");
    out.firmware_retry.reason = member.text("reason");
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  if (const auto* build = read.field("image_build", kMayBeAbsent)) {
    Members member(*build, "run.image_build");
    out.image_build.image = member.text("image");
    out.image_build.over = member.text("over");
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  if (const auto* rollout = read.field("rollout", kMayBeAbsent)) {
    Members member(*rollout, "run.rollout");
    out.rollout.id = member.text("id");
    out.rollout.back = member.flag("back");
    out.rollout.driver = member.text("driver");
    out.rollout.wipe_reason = member.text("wipe_reason");
    if (const auto good = member.finish(); !good) read.take(good.error());
  }
  out.waits_until = read.time("waits_until", kMayBeAbsent);
  out.unreadable = read.text("unreadable", kMayBeAbsent);
  Members progress(read.object("progress", kAnswerItems), "run.progress");
  out.progress = {progress.count("rounds"), progress.count("planned"), progress.count("done"),
                  progress.count("failed"), progress.count("blocked"), progress.count("skipped"),
                  progress.count("held")};
  if (const auto good = progress.finish(); !good) read.take(good.error());
  out.problems = read.texts("problems");
  out.stamps = read.items("stamps", [](const json& each) -> Result<RunStamp> {
    Members member(each, "run.stamp");
    RunStamp stamp{member.word("state", parseRunState), member.word("reason", parseRunReason),
                   member.time("at"), member.text("by")};
    return member.as(std::move(stamp));
  });
  out.first_event = static_cast<std::int64_t>(read.unsignedNumber("first_event", kAnswerNumber));
  out.last_event = static_cast<std::int64_t>(read.unsignedNumber("last_event", kAnswerNumber));
  return read.as(std::move(out));
}

}  // namespace muster::api
