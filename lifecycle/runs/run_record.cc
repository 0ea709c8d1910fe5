// SPDX-License-Identifier: Apache-2.0
// The record of a run: each type says its fields once.
#include "inventory/parse/hostlist.h"
#include "lifecycle/runs/run_words.h"

namespace muster::lifecycle {
namespace {

constexpr std::uint64_t kFormat = 1;  ///< a muster that changes what a field means counts it up
constexpr std::size_t kMaxNameBytes = 256, kMaxWordBytes = 64, kMaxHashBytes = 128,
                      kMaxCommandBytes = 16u << 10, kMaxApprovals = 64, kMaxDomains = 100'000,
                      kMaxUnread = 10'000, kMaxFactBytes = 64u << 10, kMaxRecordBytes = 64u << 20;
constexpr std::uint64_t kMaxSeconds = 10ull * 365 * 24 * 3600;

constexpr wire::Text kName{kMaxNameBytes}, kText{kMaxRunTextBytes}, kHash{kMaxHashBytes},
    kHostlist{kMaxRunHostlistBytes};

constexpr wire::Words<DomainKind, 4> kDomainKinds{{{DomainKind::Pool, "pool"},
                                                   {DomainKind::Rack, "rack"},
                                                   {DomainKind::Su, "su"},
                                                   {DomainKind::Leaf, "leaf"}}};

struct Time {
  nlohmann::json print(WallTime value) const { return muster::toString(value); }
  void read(wire::JsonReader& reader, const char* key, bool optional, WallTime& value) const {
    if (!reader.field(key, optional)) return;
    auto time = parseWallTime(reader.text(key, kMaxWordBytes));
    if (!time) reader.wrong(key, "is no time");
    if (time) value = *time;
  }
};

/// As a hostlist.
struct Nodes {
  nlohmann::json print(const std::vector<NodeName>& value) const {
    std::vector<std::string> names;
    for (const auto& node : value) names.push_back(node.str());
    return inventory::foldHostlist(std::move(names));
  }
  void read(wire::JsonReader& reader, const char* key, bool optional,
            std::vector<NodeName>& value) const {
    if (!reader.field(key, optional)) return;
    const auto text = reader.text(key, kMaxRunHostlistBytes);
    if (text.empty()) return;
    const auto names = inventory::expandHostlist(text);
    if (!names) return reader.wrong(key, names.error().text());
    for (const auto& name : *names) value.emplace_back(name);
  }
};

struct NodesByText {
  nlohmann::json print(const std::map<std::string, std::vector<NodeName>>& value) const {
    auto out = nlohmann::json::object();
    for (const auto& [text, nodes] : value) out[text] = Nodes().print(nodes);
    return out;
  }
  void read(wire::JsonReader& reader, const char* key, bool optional,
            std::map<std::string, std::vector<NodeName>>& value) const {
    const auto& object = reader.object(key, kMaxUnread, optional);
    wire::JsonReader inner(object, reader.path() + "." + key);
    for (const auto& [text, unused] : object.items())
      Nodes().read(inner, text.c_str(), false, value[text]);
    if (auto read = inner.finish(); !read) reader.take(read.error());
  }
};

/// The format and the record, as one object.
struct Record {
  std::uint64_t format = kFormat;
  Run run;
};

}  // namespace
}  // namespace muster::lifecycle

namespace muster::wire {

using namespace muster::lifecycle;

template <>
inline constexpr auto kFields<RunActor> = std::tuple(
    field("principal", &RunActor::principal, kName), field("way", &RunActor::way, kName).omitted(),
    field("address", &RunActor::address, kName).omitted(),
    field("person", &RunActor::person, kName).omitted(),
    field("issuers", &RunActor::issuers, Texts{kMaxIssuers, kMaxNameBytes}).omitted(),
    field("account", &RunActor::account, kName).omitted(),
    field("token", &RunActor::token, kName).omitted());

template <>
inline constexpr auto kFields<ApplyParams> =
    std::tuple(field("nodes", &ApplyParams::nodes, kHostlist).omitted(),
               field("confirm", &ApplyParams::confirm, Flag{}).omitted(),
               field("command", &ApplyParams::command, Text{kMaxCommandBytes}).omitted(),
               field("inventory", &ApplyParams::inventory, kHash).omitted());

template <>
inline constexpr auto kFields<EraseParams> =
    std::tuple(field("disks", &EraseParams::disks, Texts{kMaxErasedDisks, kMaxNameBytes}).omitted(),
               field("reason", &EraseParams::reason, kText).omitted(),
               field("request", &EraseParams::request, kName).omitted());

template <>
inline constexpr auto kFields<RolloutParams> =
    std::tuple(field("id", &RolloutParams::id, kName).omitted(),
               field("back", &RolloutParams::back, Flag{}).omitted(),
               field("change", &RolloutParams::change, Text{kMaxRolloutChangeBytes}).omitted(),
               field("driver", &RolloutParams::driver, kName).omitted(),
               field("change_file", &RolloutParams::change_file, kText).omitted(),
               field("canaries", &RolloutParams::canaries, Whole{}).omitted(),
               field("on_failure", &RolloutParams::on_failure,
                     Maybe{Word<inventory::OnFailure, 2>{&kOnFailure, kMaxWordBytes}})
                   .omittedIf([](const RolloutParams& asked) { return !asked.on_failure; }),
               field("on_inconclusive", &RolloutParams::on_inconclusive,
                     Maybe{Word<inventory::OnInconclusive, 2>{&kOnInconclusive, kMaxWordBytes}})
                   .omittedIf([](const RolloutParams& asked) { return !asked.on_inconclusive; }),
               field("wipe_reason", &RolloutParams::wipe_reason, kText).omitted());

template <>
inline constexpr auto kFields<ValidateParams> = std::tuple(
    field("gates", &ValidateParams::gates, Texts{kMaxValidatedGates, kMaxNameBytes}).omitted(),
    field("synchronized_load", &ValidateParams::synchronized_load, Flag{}).omitted());

template <>
inline constexpr auto kFields<IsolateParams> =
    std::tuple(field("engine", &IsolateParams::engine, kName).omitted(),
               field("min_gbps", &IsolateParams::min_gbps, Number{}).omitted(),
               field("seed", &IsolateParams::seed, Whole{}).omitted(),
               field("until", &IsolateParams::until, kName).omitted());

template <>
inline constexpr auto kFields<LiftedFailure> = std::tuple(
    field("node", &LiftedFailure::node, kName), field("facet", &LiftedFailure::facet, kName),
    field("value", &LiftedFailure::value, Text{kMaxFactBytes}),
    field("observed_at", &LiftedFailure::observed_at, Time{}),
    field("source", &LiftedFailure::source, kName).omitted());

template <>
inline constexpr auto kFields<FirmwareRetryParams> =
    std::tuple(field("reason", &FirmwareRetryParams::reason, kText).omitted(),
               field("lifted", &FirmwareRetryParams::lifted, Items{kMaxLiftedFailures}).omitted());

template <>
inline constexpr auto kFields<ImageBuildParams> =
    std::tuple(field("image", &ImageBuildParams::image, kName).omitted(),
               field("over", &ImageBuildParams::over, kName).omitted());

template <>
inline constexpr auto kFields<BmcChangeParams> =
    std::tuple(field("done", &BmcChangeParams::done, kHostlist).omitted());

template <>
inline constexpr auto kFields<RunApproval> =
    std::tuple(field("by", &RunApproval::by, Object{}), field("at", &RunApproval::at, Time{}),
               field("plan", &RunApproval::plan_hash, kHash),
               field("confirmation", &RunApproval::confirmation, Flag{}).omitted(),
               field("void_because", &RunApproval::void_because, kText).omitted());

template <>
inline constexpr auto kFields<RunOverride> = std::tuple(
    field("by", &RunOverride::by, Object{}), field("at", &RunOverride::at, Time{}),
    field("plan", &RunOverride::plan_hash, kHash),
    field("against", &RunOverride::against, Word<RunReason, 22>{&kRunReasons, kMaxWordBytes}),
    field("reason", &RunOverride::reason, kText),
    field("acknowledged_by", &RunOverride::acknowledged_by, kName).omitted(),
    field("acknowledged_at", &RunOverride::acknowledged_at, Time{}).omitted(),
    field("void_because", &RunOverride::void_because, kText).omitted());

template <>
inline constexpr auto kFields<RunStamp> = std::tuple(
    field("state", &RunStamp::state, Word<RunState, 13>{&kRunStates, kMaxWordBytes}),
    field("reason", &RunStamp::reason, Word<RunReason, 22>{&kRunReasons, kMaxWordBytes}).omitted(),
    field("at", &RunStamp::at, Time{}), field("by", &RunStamp::by, kName).omitted());

template <>
inline constexpr auto kFields<RunProgress> =
    std::tuple(field("rounds", &RunProgress::rounds, Whole{}).omitted(),
               field("planned", &RunProgress::planned, Whole{}).omitted(),
               field("done", &RunProgress::done, Whole{}).omitted(),
               field("failed", &RunProgress::failed, Whole{}).omitted(),
               field("blocked", &RunProgress::blocked, Whole{}).omitted(),
               field("skipped", &RunProgress::skipped, Whole{}).omitted(),
               field("held", &RunProgress::held, Whole{}).omitted());

template <>
inline constexpr auto kFields<DomainImpact> = std::tuple(
    field(
        "kind", [](auto&& impact) -> auto& { return impact.domain.kind; },
        Word<DomainKind, 4>{&kDomainKinds, kMaxWordBytes}),
    field(
        "name", [](auto&& impact) -> auto& { return impact.domain.name; }, kName),
    field("taken_out", &DomainImpact::taken_out, Whole{}),
    field("already_out", &DomainImpact::already_out, Whole{}),
    field("size", &DomainImpact::size, Whole{}), field("limit", &DomainImpact::limit, Whole{}));

template <>
inline constexpr auto kFields<PlanImpact> = std::tuple(
    field("actions", &PlanImpact::actions, Whole{}),
    field("blocked", &PlanImpact::blocked, Whole{}),
    field("subjects", &PlanImpact::subjects, Whole{}),
    field("taken_out", &PlanImpact::taken_out, Nodes{}),
    field("wiped", &PlanImpact::wiped, Nodes{}), field("reset", &PlanImpact::reset, Nodes{}),
    field("run_limit", &PlanImpact::run_limit, Whole{}).omitted(),
    field("domains", &PlanImpact::domains, Items{kMaxDomains}),
    field("unread", &PlanImpact::unread, NodesByText{}),
    field("at_least_s", &PlanImpact::at_least, Seconds{kMaxSeconds}));

template <>
inline constexpr auto kFields<Run> = std::tuple(
    field("apply", &Run::apply, Object{}), field("erase", &Run::erase, Object{}).omitted(),
    field("rollout", &Run::rollout, Object{}).omitted(),
    field("validate", &Run::validate, Object{}).omitted(),
    field("isolate", &Run::isolate, Object{}).omitted(),
    field("firmware_retry", &Run::firmware_retry, Object{}).omitted(),
    field("image_build", &Run::image_build, Object{}).omitted(),
    field("bmc_change", &Run::bmc_change, Object{}).omitted(),
    field("asked_by", &Run::asked_by, Object{}),
    field("after_restart", &Run::after_restart,
          Word<AfterRestart, 2>{&kAfterRestart, kMaxWordBytes})
        .omitted(),
    field("reason", &Run::reason, Word<RunReason, 22>{&kRunReasons, kMaxWordBytes}).omitted(),
    field("text", &Run::text, kText).omitted(),
    field("order", &Run::order, Word<RunOrder, 3>{&kRunOrders, kMaxWordBytes}).omitted(),
    field("ordered_by", &Run::ordered_by, kName).omitted(),
    field("worked_on_by", &Run::worked_on_by, kName).omitted(),
    field("begun", &Run::begun, Flag{}).omitted(),
    field("inventory", &Run::inventory_digest, kHash).omitted(),
    field("plan", &Run::plan_hash, kHash).omitted(),
    field("planned_at", &Run::planned_at, Time{}).omitted(),
    field("subjects", &Run::subjects, kHostlist).omitted(),
    field("impact", &Run::impact, Maybe{Object{}}).omittedIf([](const Run& run) {
      return !run.impact;
    }),
    field("approvals_needed", &Run::approvals_needed, Whole{kMaxApprovals}).omitted(),
    field("approvals", &Run::approvals, Items{kMaxApprovals}).omitted(),
    field("overrides", &Run::overrides, Items{kMaxApprovals}).omitted(),
    field("waits_until", &Run::waits_until, Time{}).omitted(),
    field("agreed_out", &Run::agreed_out, kHostlist).omitted(),
    field("agreed_wipes", &Run::agreed_wipes, kHostlist).omitted(),
    field("agreed_resets", &Run::agreed_resets, kHostlist).omitted(),
    field("progress", &Run::progress, Object{}).omitted(),
    field("problems", &Run::problems, Texts{kMaxRunProblems, kMaxRunTextBytes}).omitted(),
    field("stamps", &Run::stamps, Items{kMaxRunStamps}),
    field("first_event", &Run::first_event, Whole{}).omitted(),
    field("last_event", &Run::last_event, Whole{}).omitted());

template <>
inline constexpr auto kFields<Record> =
    std::tuple(field("format", &Record::format, Whole{}), field("run", &Record::run, Object{}));

}  // namespace muster::wire

namespace muster::lifecycle {

std::string recordOf(const Run& run) { return jsonText(wire::printFields(Record{kFormat, run})); }

Result<std::string> checkedRecordOf(const Run& run) {
  auto record = recordOf(run);
  if (const auto read = runFromRecord(record); !read) return std::unexpected(read.error());
  return record;
}

Result<Run> runFromRecord(std::string_view text) {
  TRY(object, wire::parseObject(text, kMaxRecordBytes, "the run's record"));
  const auto format = object.find("format");
  if (format != object.end() && format->is_number_unsigned() &&
      format->get<std::uint64_t>() > kFormat)
    return fail(ErrorCode::Conflict,
                "a newer muster has written it; look at it, or cancel it, with that one");
  wire::JsonReader reader(object, "run");
  Record record;
  wire::readFields(reader, record);
  TRY_OK(reader.finish());
  return std::move(record.run);
}

}  // namespace muster::lifecycle
