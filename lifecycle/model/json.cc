// SPDX-License-Identifier: Apache-2.0
// JSON forms of lifecycle's words.
#include "lifecycle/model/json.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "lifecycle/model/consoles.h"

namespace muster::lifecycle {
namespace {

using nlohmann::json;

void putTime(json& out, const char* key, WallTime time) {
  if (time != WallTime{}) out[key] = muster::toString(time);
}

void putText(json& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

/// Evidence that is itself JSON stays readable as such.
void putEvidence(json& out, const std::string& evidence) {
  if (evidence.empty()) return;
  auto parsed = jsonOrNone(evidence, kKeptJson);
  out["evidence"] = parsed.is_structured() ? std::move(parsed) : json(evidence);
}

/// Reads typed members and remembers the first thing that is wrong, so that a reader is a flat list
/// of lines.
class Reader {
 public:
  explicit Reader(const json& source) : source_(source) {
    if (!source.is_object()) wrong_ = "is not an object";
  }
  std::string text(const char* key, bool required) {
    auto it = member(key, required);
    if (!it) return {};
    if (!it->is_string()) return note(key, "is not text"), std::string();
    return it->get<std::string>();
  }
  std::chrono::seconds seconds(const char* key) {
    auto it = member(key, true);
    if (!it) return {};
    if (!it->is_number_unsigned())
      return note(key, "is not a number of seconds"), std::chrono::seconds{};
    return std::chrono::seconds(it->get<std::uint32_t>());
  }
  /// WallTime{} when it is absent.
  WallTime time(const char* key) {
    const auto said = text(key, false);
    if (said.empty()) return {};
    const auto time = parseWallTime(said);
    if (!time) note(key, "is not a time");
    return time.value_or(WallTime{});
  }
  std::vector<std::string> texts(const char* key) {
    std::vector<std::string> out;
    auto it = member(key, true);
    if (!it) return out;
    if (!it->is_array()) return note(key, "is not a list"), out;
    for (const auto& item : *it) {
      if (!item.is_string()) return note(key, "holds something that is not text"), out;
      out.push_back(item.get<std::string>());
    }
    return out;
  }
  void note(const char* key, const char* what) {
    if (wrong_.empty()) wrong_ = fmt::format("'{}' {}", key, what);
  }
  const std::string& wrong() const { return wrong_; }

 private:
  const json* member(const char* key, bool required) {
    if (!wrong_.empty()) return nullptr;
    auto it = source_.find(key);
    if (it != source_.end()) return &*it;
    if (required) note(key, "is missing");
    return nullptr;
  }
  const json& source_;
  std::string wrong_;
};

}  // namespace

std::string_view severityWord(Severity severity) {
  switch (severity) {
    case Severity::Info:
      return "info";
    case Severity::Warning:
      return "warning";
    case Severity::Error:
      return "error";
  }
  return "error";
}

std::string canonical(const json& value) { return jsonText(value); }

std::string evidenceWithConsole(json evidence, const ConsoleLines& console, const Subject& subject,
                                WallTime since) {
  if (console)
    if (auto lines = console(subject); !lines.empty())
      evidence[std::string(kConsoleEvidence)] = markedAsOlder(std::move(lines), since);
  return canonical(evidence);
}

json toJson(const Action& action) {
  json out = {{"id", action.id},
              {"subject", action.facet.subject.str()},
              {"facet", action.facet.facet.str()},
              {"phase", action.phase},
              {"from", action.from},
              {"to", action.to},
              {"reason", action.reason},
              {"disruption", toString(action.disruption)},
              {"expected_s", static_cast<std::uint64_t>(action.expected.count())},
              {"deadline_s", static_cast<std::uint64_t>(action.deadline.count())},
              {"needs", action.needs}};
  putText(out, "blocked", action.blocked);
  if (action.cause != ActionCause::Declared) out["cause"] = toString(action.cause);
  putText(out, "about", action.about.str());
  return out;
}

void appendCanonical(std::string& out, const Action& action) {
  const auto text = [&out](std::string_view key, std::string_view value) {
    out += key;
    appendJsonText(out, value);
  };
  // By the order of the keys; what is optional in toJson comes first.
  out += '{';
  const auto optional = [&](std::string_view key, std::string_view value) {
    if (value.empty()) return;
    text(key, value);
    out += ',';
  };
  optional("\"about\":", action.about.str());
  optional("\"blocked\":", action.blocked);
  if (action.cause != ActionCause::Declared) optional("\"cause\":", toString(action.cause));
  fmt::format_to(std::back_inserter(out), "\"deadline_s\":{}",
                 static_cast<std::uint64_t>(action.deadline.count()));
  text(",\"disruption\":", toString(action.disruption));
  fmt::format_to(std::back_inserter(out), ",\"expected_s\":{}",
                 static_cast<std::uint64_t>(action.expected.count()));
  text(",\"facet\":", action.facet.facet.str());
  text(",\"from\":", action.from);
  text(",\"id\":", action.id);
  out += ",\"needs\":[";
  for (const auto& need : action.needs) {
    if (&need != &action.needs.front()) out += ',';
    appendJsonText(out, need);
  }
  out += ']';
  text(",\"phase\":", action.phase);
  text(",\"reason\":", action.reason);
  text(",\"subject\":", action.facet.subject.str());
  text(",\"to\":", action.to);
  out += '}';
}

Result<Action> actionFromJson(const json& source) {
  Reader read(source);
  Action action;
  action.id = read.text("id", true);
  action.facet = {Subject::parse(read.text("subject", true)), FacetName(read.text("facet", true))};
  action.phase = read.text("phase", true);
  action.from = read.text("from", true);
  action.to = read.text("to", true);
  action.reason = read.text("reason", true);
  auto disruption = parseDisruption(read.text("disruption", true));
  if (!disruption) read.note("disruption", "is not one of none, drain, reset, wipe");
  action.disruption = disruption.value_or(Disruption::Wipe);
  action.expected = read.seconds("expected_s");
  action.deadline = read.seconds("deadline_s");
  action.needs = read.texts("needs");
  action.blocked = read.text("blocked", false);
  action.about = FacetName(read.text("about", false));
  if (const auto word = read.text("cause", false); !word.empty()) {
    const auto cause = parseActionCause(word);
    if (!cause) read.note("cause", "is no known cause");
    action.cause = cause.value_or(ActionCause::Declared);
  }
  if (!read.wrong().empty())
    return fail(ErrorCode::Corrupt, "an action of the plan cannot be read: " + read.wrong());
  return action;
}

json toJson(const Goal& goal) {
  json needs = json::array();
  for (const auto& need : goal.needs) needs.push_back(need.str());
  return {{"subject", goal.facet.subject.str()},
          {"facet", goal.facet.facet.str()},
          {"want", goal.want},
          {"disruption", toString(goal.disruption)},
          {"expected_s", goal.expected.count()},
          {"deadline_s", goal.deadline.count()},
          {"needs", std::move(needs)},
          {"why", goal.why}};
}

json toJson(const Fact& fact) {
  json out = {{"subject", fact.subject.str()},
              {"facet", fact.facet.str()},
              {"value", fact.value},
              {"source", fact.source}};
  putTime(out, "observed_at", fact.observed_at);
  putEvidence(out, fact.evidence);
  return out;
}

json toJson(const Finding& finding) {
  json out = {{"subject", finding.facet.subject.str()},
              {"facet", finding.facet.facet.str()},
              {"severity", severityWord(finding.severity)},
              {"text", finding.text},
              {"what_to_do", finding.what_to_do}};
  putText(out, "source", finding.source);
  putTime(out, "at", finding.at);
  putEvidence(out, finding.evidence);
  return out;
}

json toJson(const Intent& intent) {
  json out = {{"id", intent.id},
              {"plan_hash", intent.plan_hash},
              {"action", toJson(intent.action)},
              {"state", toString(intent.state)}};
  putText(out, "operation", intent.operation);
  putText(out, "outcome", intent.outcome);
  putTime(out, "opened_at", intent.opened_at);
  putTime(out, "closed_at", intent.closed_at);
  putText(out, "request", intent.request);
  if (intent.fence != 0) out["fence"] = intent.fence;
  if (intent.closed_at != WallTime{})
    out["duration_ms"] = (intent.closed_at - intent.opened_at).count();
  if (intent.uses_wipe) out["uses_wipe"] = true;
  return out;
}

Result<Intent> intentFromJson(const json& source) {
  Reader read(source);
  Intent out;
  out.id = read.text("id", true);
  out.plan_hash = read.text("plan_hash", true);
  const auto state = parseIntentState(read.text("state", true));
  if (!state) read.note("state", "is not one of an action's states");
  out.state = state.value_or(IntentState::Open);
  out.operation = read.text("operation", false);
  out.outcome = read.text("outcome", false);
  out.opened_at = read.time("opened_at");
  out.closed_at = read.time("closed_at");
  out.request = read.text("request", false);
  if (!read.wrong().empty()) return fail(ErrorCode::Corrupt, "an action's " + read.wrong());
  const auto fence = source.find("fence");
  if (fence != source.end() && fence->is_number_integer()) out.fence = fence->get<std::int64_t>();
  const auto wipes = source.find("uses_wipe");
  out.uses_wipe = wipes != source.end() && *wipes == true;
  const auto action = source.find("action");
  TRY(made, actionFromJson(action == source.end() ? json() : *action));
  out.action = std::move(made);
  return out;
}

Result<Request> requestFromJson(const json& source) {
  Reader read(source);
  Request out;
  out.id = read.text("id", true);
  out.plan_hash = read.text("plan_hash", true);
  out.user = read.text("user", true);
  out.host = read.text("host", true);
  out.command = read.text("command", true);
  out.outcome = read.text("outcome", false);
  out.at = read.time("at");
  out.ended_at = read.time("ended_at");
  if (!read.wrong().empty()) return fail(ErrorCode::Corrupt, "a request's " + read.wrong());
  return out;
}

json toJson(const Request& request) {
  json out = {{"id", request.id},
              {"plan_hash", request.plan_hash},
              {"user", request.user},
              {"host", request.host},
              {"command", request.command}};
  putText(out, "outcome", request.outcome);
  putTime(out, "at", request.at);
  putTime(out, "ended_at", request.ended_at);
  return out;
}

json toJson(const Event& event) {
  json out = {{"sequence", event.sequence}, {"kind", toString(event.kind)}, {"text", event.text}};
  putTime(out, "at", event.at);
  putText(out, "subject", event.subject.str());
  putText(out, "action", event.action_id);
  if (event.fraction >= 0) out["fraction"] = event.fraction;
  return out;
}

}  // namespace muster::lifecycle
