// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/planner/explain.h"

#include "base/json_input.h"
#include "base/json_output.h"
#include "base/limits.h"
#include "base/printable.h"
#include "inventory/model/cluster.h"
#include "lifecycle/model/json.h"
#include "lifecycle/model/node_state.h"
#include "lifecycle/model/unread.h"

#include <algorithm>

namespace muster::lifecycle {
namespace {

using nlohmann::json;
constexpr std::size_t kRecentEvents = 10;

std::string ago(WallTime now, WallTime then) {
  return now < then ? "just now" : ageText(now, then) + " ago";
}

std::string seenWords(const ExplainInput& input, const FacetName& facet) {
  const Fact* fact = input.facts.find(input.subject, facet);
  if (!fact) return "never seen";
  return fmt::format("'{}' ({}{}{})", fact->value, ago(input.now, fact->observed_at),
                     fact->source.empty() ? "" : ", from ", fact->source);
}

const Event* lastWord(const ExplainInput& input, const std::string& action_id) {
  for (auto it = input.events.rbegin(); it != input.events.rend(); ++it)
    if (!it->text.empty() && (action_id.empty() || it->action_id == action_id)) return &*it;
  return nullptr;
}

std::string lastWords(const ExplainInput& input, const std::string& action_id) {
  const Event* event = lastWord(input, action_id);
  return event ? fmt::format("{} ({}, {})", event->text, toString(event->kind),
                             ago(input.now, event->at))
               : "no evidence yet";
}

/// An action is under way, or was when muster stopped.
void aboutIntent(const ExplainInput& input, const Intent& intent, Explanation& out) {
  const auto& action = intent.action;
  const auto taken = std::chrono::duration_cast<std::chrono::seconds>(input.now - intent.opened_at);
  out.facet = action.facet.facet.str();
  out.state = fmt::format("{}: {} is on its way to '{}', begun {}", out.word, out.facet, action.to,
                          ago(input.now, intent.opened_at));
  const auto estimate = input.estimates.of(action);
  const bool late = estimate.isLate(input.now - intent.opened_at, input.slowness);
  const bool overdue = std::chrono::duration<double>(taken) >
                       std::chrono::duration<double>(action.deadline) * input.slowness;
  const auto deadline = limitText(input.slowness, action.deadline);
  if (overdue)
    out.state +=
        fmt::format("; that is past its deadline of {}; it takes {}", deadline, estimate.text());
  else if (late)
    out.state += fmt::format("; that is longer than it should take: {}", estimate.text());
  else if (estimate.samples > 0)
    out.state += fmt::format("; it takes {}", estimate.text());
  out.expected = action.to;
  out.observed = seenWords(input, action.facet.facet);
  out.last_evidence = lastWords(input, action.id);
  if (!intent.operation.empty()) out.last_evidence += "; outside operation " + intent.operation;
  out.next_step =
      overdue
          ? "muster has stopped, or the deadline has passed: `muster apply` verifies it and resumes"
      : late ? std::string(lateAdvice(action))
             : fmt::format(
                   "wait until its deadline ({}), or, when no muster is running, `muster apply` "
                   "to go on",
                   deadline);
}

/// Evidence without the console's lines, which are shown as lines.
std::string withoutConsole(const std::string& evidence, std::vector<std::string>& console) {
  auto parsed = jsonOrNone(evidence, kKeptJson);
  if (!parsed.is_object()) return evidence;
  const auto found = parsed.find(kConsoleEvidence);
  if (found == parsed.end() || !found->is_array()) return evidence;
  for (const auto& line : *found)
    if (line.is_string()) console.push_back(line.get<std::string>());
  parsed.erase(found);
  return canonical(parsed);
}

/// The facet's action that cannot run, and says what would allow it; null: there is none.
const Action* blockedAction(const ExplainInput& input, const FacetRef& facet) {
  const auto found = std::ranges::find_if(input.actions, [&facet](const Action& action) {
    return action.facet == facet && !action.blocked.empty();
  });
  return found == input.actions.end() ? nullptr : &*found;
}

/// What the engine says of an attempt that has failed ("apply again") is older than what the plan
/// says of the next one.
std::string nextStepOf(const ExplainInput& input, const Finding& finding) {
  const auto* blocked = blockedAction(input, finding.facet);
  if (blocked && finding.source == engineSource(blocked->phase)) return blocked->blocked;
  return finding.what_to_do.empty() ? "`muster plan` shows what would be done" : finding.what_to_do;
}

void aboutFinding(const ExplainInput& input, const Finding& finding, Explanation& out) {
  out.facet = finding.facet.facet.str();
  out.state = fmt::format("{}: {}", out.word, finding.text);
  auto goal = std::find_if(input.goals.begin(), input.goals.end(),
                           [&finding](const Goal& g) { return g.facet == finding.facet; });
  out.expected = goal == input.goals.end() ? "no finding" : goal->want;
  // What a monitor found is often of no facet that anybody reads: it is what was observed.
  const bool is_read =
      goal != input.goals.end() || input.facts.find(input.subject, finding.facet.facet);
  out.observed = is_read ? seenWords(input, finding.facet.facet)
                         : fmt::format("{} ({}{}{})", finding.text, ago(input.now, finding.at),
                                       finding.source.empty() ? "" : ", from ", finding.source);
  const auto evidence = withoutConsole(finding.evidence, out.console);
  out.last_evidence = evidence.empty()
                          ? lastWords(input, finding.facet.str())
                          : fmt::format("{} ({})", evidence, ago(input.now, finding.at));
  out.next_step = nextStepOf(input, finding);
}

void aboutGoal(const ExplainInput& input, const Goal& goal, Explanation& out) {
  out.facet = goal.facet.facet.str();
  out.state = fmt::format("{}: {} is not as declared ({})", out.word, out.facet, goal.why);
  out.expected = goal.want;
  out.observed = seenWords(input, goal.facet.facet);
  out.last_evidence = lastWords(input, "");
  const auto* blocked = blockedAction(input, goal.facet);
  out.next_step = blocked ? blocked->blocked : "`muster apply`";
}

/// All that is known is as declared, but not all of it can be trusted any more.
void aboutUnread(const ExplainInput& input, const Unread& unread, Explanation& out) {
  out.facet = std::string(kUnreadPrefix) + unread.what;
  out.state = fmt::format("{}: what was seen last is as declared, but {}", out.word,
                          text(unread, input.now));
  out.expected = "it can be read";
  out.observed = unread.code;
  out.last_evidence = unread.text;
  out.next_step =
      unread.code == toString(ErrorCode::Denied)
          ? fmt::format(
                "make the BMC's account and the inventory agree (`muster bmc show {0}`), "
                "then `muster bmc auth reset {0}` and `muster plan --nodes {0}`",
                input.subject.str())
          : fmt::format("`muster plan --nodes {}` reads it again", input.subject.str());
}

/// Whether one of this node's own goals has to be met before this one: then that one is the thing
/// to look at.
bool waitsForAnother(const Goal& goal, const std::vector<Goal>& unmet) {
  return std::any_of(unmet.begin(), unmet.end(), [&goal](const Goal& other) {
    return std::find(goal.needs.begin(), goal.needs.end(), other.facet) != goal.needs.end();
  });
}

}  // namespace

Result<ExplainInput> gatherExplanation(const ExplainSources& from, const Subject& subject) {
  ExplainInput input;
  input.subject = subject;
  input.now = from.now;
  input.slowness = from.slowness;
  TRY(wipe_grants, from.store.wipeGrants());
  TRY(open, from.store.openIntentsOf(subject));
  auto with_cluster = open;
  if (!subject.isCluster()) {
    TRY(of_cluster, from.store.openIntentsOf(Subject::cluster()));
    std::ranges::move(of_cluster, std::back_inserter(with_cluster));
  }
  const auto policy = policyOf({subject}, wipe_grants, with_cluster);
  TRY(plan, makePlan(from.cluster, from.roster, from.facts, policy, from.phases));
  for (Phase* phase : from.phases)
    for (auto& goal : phase->goals(from.cluster, subject, from.facts))
      input.goals.push_back(std::move(goal));
  for (auto& action : plan.actions)
    if (action.facet.subject == subject) input.actions.push_back(std::move(action));
  input.open = std::move(open);
  TRY(findings, from.store.findings(&subject));
  TRY(events, from.store.lastEvents(kRecentEvents, &subject));
  if (!input.open.empty()) {  // only what is under way can be late
    TRY(estimates, from.durations.of(from.cluster, from.store, subject, from.steady));
    input.estimates = *estimates;
  }
  for (auto& fact : from.facts.of(subject)) input.facts.put(std::move(fact));
  input.findings = std::move(findings);
  input.events = std::move(events);
  return input;
}

Explanation explain(const ExplainInput& input) {
  Explanation out;
  out.subject = input.subject;
  out.word = nodeState(input.subject, input.facts, input.goals, input.findings, input.open);
  out.findings = input.findings;
  const auto unread = unreadOf(input.facts, input.subject);
  for (const auto& each : unread) out.stale.push_back(text(each, input.now));
  const auto keep = std::min(input.events.size(), kRecentEvents);
  out.recent.assign(input.events.end() - static_cast<std::ptrdiff_t>(keep), input.events.end());
  auto unmet = inStageOrder(input.goals);
  std::erase_if(unmet, [&input](const Goal& goal) { return isMet(goal, input.facts); });
  for (const auto& goal : unmet)
    out.unmet.push_back(fmt::format("{}: want '{}', {}", goal.facet.facet.str(), goal.want,
                                    seenWords(input, goal.facet.facet)));
  const auto first = std::find_if_not(unmet.begin(), unmet.end(), [&unmet](const Goal& goal) {
    return waitsForAnother(goal, unmet);
  });
  const auto bad = [](const Finding& finding) { return finding.severity == Severity::Error; };
  auto finding = std::find_if(input.findings.begin(), input.findings.end(), bad);
  if (finding == input.findings.end()) finding = input.findings.begin();
  if (!input.open.empty())
    aboutIntent(input, input.open.front(), out);
  else if (finding != input.findings.end())
    aboutFinding(input, *finding, out);
  else if (first != unmet.end())
    aboutGoal(input, *first, out);
  else if (!unread.empty())
    aboutUnread(input, unread.front(), out);
  else
    out.state = fmt::format("{}: everything is as declared", out.word);
  return out;
}

std::string Explanation::text() const {
  std::string out = fmt::format("{}: {}\n", subject.str(), printable(state));
  auto line = [&out](std::string_view label, const std::string& value) {
    if (!value.empty()) out += fmt::format("  {:<14} {}\n", label, printable(value));
  };
  line("expected", expected);
  line("observed", observed);
  line("last evidence", last_evidence);
  for (const auto& said : console) line("console", said);
  line("next step", next_step);
  line("rollout", rollout);
  for (const auto& finding : findings) {
    const auto source = finding.source.empty() ? "" : fmt::format("raised by {}, ", finding.source);
    line("finding", fmt::format("{}: {} ({}{})", finding.facet.facet.str(), finding.text, source,
                                muster::toString(finding.at)));
    line("", finding.what_to_do.empty() ? "" : "→ " + finding.what_to_do);
  }
  for (const auto& each : stale) line("stale", each);
  for (const auto& goal : unmet) line("not met", goal);
  for (const auto& event : recent)
    line("event",
         fmt::format("{} {} {}", muster::toString(event.at), toString(event.kind), event.text));
  return out;
}

std::string Explanation::toJson() const {
  json events = json::array(), found = json::array();
  for (const auto& event : recent) events.push_back(lifecycle::toJson(event));
  for (const auto& finding : findings) found.push_back(lifecycle::toJson(finding));
  const json out = {{"subject", subject.str()},
                    {"word", word},
                    {"state", state},
                    {"facet", facet},
                    {"as_declared", asDeclared()},
                    {"expected", expected},
                    {"observed", observed},
                    {"last_evidence", last_evidence},
                    {"console", console},
                    {"next_step", next_step},
                    {"unmet", unmet},
                    {"stale", stale},
                    {"rollout", rollout},
                    {"findings", std::move(found)},
                    {"events", std::move(events)}};
  return jsonText(out, 2) + "\n";
}

}  // namespace muster::lifecycle
