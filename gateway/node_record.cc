// SPDX-License-Identifier: Apache-2.0
#include "gateway/node_record.h"

#include "base/log.h"

#include <algorithm>

namespace muster::gateway {
namespace {

const wire::AgentTaskReport* findReport(const std::vector<wire::AgentTaskReport>& reports,
                                        const std::string& id) {
  auto it = std::find_if(reports.begin(), reports.end(),
                         [&](const auto& report) { return report.id == id; });
  return it == reports.end() ? nullptr : &*it;
}

}  // namespace

const wire::AgentTaskReport* NodeRecord::report(const std::string& id) const {
  if (const auto* found = findReport(reports, id)) return found;
  auto it = lost.find(id);
  return it == lost.end() ? nullptr : &it->second;
}

bool NodeRecord::isWaiting(const std::string& id) const {
  return std::any_of(waiting.begin(), waiting.end(),
                     [&](const auto& task) { return task.id == id; });
}

bool NodeRecord::busy() const {
  return std::any_of(reports.begin(), reports.end(),
                     [](const auto& report) { return !wire::isFinished(report.phase); });
}

Result<bool> NodeRecord::apply(const NodeName& node, wire::PollRequest request,
                               const std::string& address, const Clock& clock) {
  if (isRetired(request)) return false;
  bool same_boot = state && state->boot_id == request.boot_id;
  if (same_boot && request.sequence <= last_sequence) return false;
  if (request.unchanged_since != 0) {
    wants_answer = false;
    markSeen(request, address, clock);
    keepAbandoned();
    return true;
  }

  health_rules = request.health_rules;
  std::optional<wire::Hardware> hardware;
  if (!request.hardware.empty()) {
    auto parsed = wire::parseHardware(request.hardware);
    if (!parsed)
      logWarning("agent", "{}: its hardware report is rejected: {}", node.str(),
                 parsed.error().str());
    if (parsed) hardware = std::move(*parsed);
  }
  std::optional<wire::HealthReport> health;
  if (!request.health.empty()) {
    auto parsed = wire::parseHealthReport(request.health);
    if (!parsed)
      logWarning("agent", "{}: its health report is rejected: {}", node.str(),
                 parsed.error().str());
    if (parsed) health = std::move(*parsed);
  }
  TRY_OK(restoreResults(request.reports));
  if (state && !same_boot) {
    logInfo("agent", "{}: boot {} ({} mode) is over, boot {} ({} mode) has begun", node.str(),
            state->boot_id, toString(state->mode), request.boot_id, toString(request.mode));
    retireBoot(request);
  }
  for (const auto& known : reports) {
    if (!wire::isFinished(known.phase) && !findReport(request.reports, known.id)) {
      markLost(known.id, same_boot ? "the agent was restarted and no longer knows the task"
                                   : "the node was restarted while the task ran");
    }
  }
  std::erase_if(waiting,
                [&](const auto& task) { return findReport(request.reports, task.id) != nullptr; });
  wants_answer =
      request.wants_answer &&
      std::any_of(request.reports.begin(), request.reports.end(), [&](const auto& report) {
        const auto* known = findReport(reports, report.id);
        return wire::isFinished(report.phase) && (!known || !wire::isFinished(known->phase));
      });
  reports = std::move(request.reports);
  keepAbandoned();

  if (!same_boot) state.emplace();
  state->node = node;
  state->mode = request.mode;
  state->boot_id = std::move(request.boot_id);
  state->image_digest = std::move(request.image_digest);
  state->probes = std::move(request.probes);
  state->fresh = request.fresh;
  if (hardware) state->hardware = std::move(*hardware);
  if (health) state->health = std::move(*health);
  markSeen(request, address, clock);
  return true;
}

void NodeRecord::markSeen(const wire::PollRequest& request, const std::string& address,
                          const Clock& clock) {
  state->last_seen = clock.now();
  state->address = address;
  last_poll = clock.steady();
  last_sequence = request.sequence;
  for (auto& boot : retired_boots) boot.polls = 0;
}

bool NodeRecord::hasStateOf(const wire::PollRequest& request) const {
  return state && state->boot_id == request.boot_id && state->mode == request.mode &&
         last_sequence == request.unchanged_since;
}

/// Is the poll of a boot that is over? Which of two boots is the later one shows only by who goes
/// on calling: the first poll of a machine that was reset at once can arrive after its next boot's.
bool NodeRecord::isRetired(const wire::PollRequest& request) {
  const auto boot =
      std::find_if(retired_boots.begin(), retired_boots.end(),
                   [&](const auto& retired) { return retired.id == request.boot_id; });
  if (boot == retired_boots.end()) return false;
  if (request.sequence <= boot->last_sequence) return true;
  boot->last_sequence = request.sequence;
  if (++boot->polls < kPollsToRevive) return true;
  retired_boots.erase(boot);
  return false;
}

/// A result that was acknowledged is listed without its text; the text is here already.
Result<void> NodeRecord::restoreResults(std::vector<wire::AgentTaskReport>& listed) const {
  for (auto& report : listed) {
    if (report.phase != wire::TaskPhase::Done || !report.result.empty()) continue;
    const auto* known = findReport(reports, report.id);
    if (!known || known->phase != wire::TaskPhase::Done) {
      return fail(ErrorCode::InvalidInput,
                  "task " + report.id + " is done but its result is missing");
    }
    report.result = known->result;
  }
  return {};
}

void NodeRecord::retireBoot(const wire::PollRequest& request) {
  retired_boots.push_back({state->boot_id, last_sequence});
  if (retired_boots.size() > kMaxRetiredBoots) retired_boots.pop_front();
  for (const auto& task : waiting) {
    if (!findReport(request.reports, task.id))
      markLost(task.id, "the node was restarted before the task could start");
  }
  waiting.clear();
}

void NodeRecord::markLost(const std::string& id, std::string why) {
  if (lost.size() >= wire::kMaxTasks) lost.erase(lost.begin());
  wire::AgentTaskReport report;
  report.id = id;
  report.phase = wire::TaskPhase::Failed;
  report.code = ErrorCode::Unavailable;
  report.text = std::move(why);
  lost[id] = std::move(report);
}

Result<void> NodeRecord::add(wire::AgentTask task) {
  if (findReport(reports, task.id) || isWaiting(task.id)) return {};
  if (waiting.size() >= kMaxWaitingTasks) {
    return fail(ErrorCode::Conflict, "there are already " + std::to_string(kMaxWaitingTasks) +
                                         " tasks waiting for the agent");
  }
  lost.erase(task.id);  // nobody runs it any more: a new try on a new boot
  waiting.push_back(std::move(task));
  work.notify();
  return {};
}

/// Those that the agent still runs: one that it never got, or that has ended, needs no word.
void NodeRecord::keepAbandoned() {
  std::erase_if(abandoned, [this](const std::string& id) {
    const auto* known = findReport(reports, id);
    return !known || wire::isFinished(known->phase);
  });
}

void NodeRecord::abandon(const std::string& id) {
  const auto was_waiting =
      std::erase_if(waiting, [&](const auto& task) { return task.id == id; }) > 0;
  if (was_waiting) markLost(id, "it was given up before the agent took it");
  // It may have been handed over already, with an answer that is under way.
  const auto* known = findReport(reports, id);
  if (!was_waiting && (!known || wire::isFinished(known->phase))) return;
  if (std::ranges::find(abandoned, id) != abandoned.end()) return;
  if (abandoned.size() + kKeepFinished * 2 >= wire::kMaxTasks) abandoned.erase(abandoned.begin());
  abandoned.push_back(id);
  work.notify();
}

std::vector<std::string> NodeRecord::takeObsolete() {
  auto finished = std::count_if(reports.begin(), reports.end(),
                                [](const auto& report) { return wire::isFinished(report.phase); });
  std::vector<std::string> forget;
  if (finished < static_cast<std::ptrdiff_t>(2 * kKeepFinished)) return forget;
  for (const auto& report : reports) {
    if (finished <= static_cast<std::ptrdiff_t>(kKeepFinished)) break;
    if (!wire::isFinished(report.phase)) continue;
    forget.push_back(report.id);
    --finished;
  }
  return forget;
}

}  // namespace muster::gateway
