// SPDX-License-Identifier: Apache-2.0
#include "lifecycle/audit/history.h"

#include "base/json_output.h"
#include "base/printable.h"
#include "lifecycle/model/json.h"

#include <algorithm>
#include <map>
#include <set>

namespace muster::lifecycle {
namespace {

constexpr std::size_t kMaxRequestsSearched = 100'000;

bool isPlanPrefix(const std::string& what) {
  return what.size() >= kShortestPlanPrefix && what.size() <= 64 &&
         std::all_of(what.begin(), what.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

std::string durationOf(WallTime from, WallTime to) {
  if (to == WallTime{}) return "not ended";
  const auto seconds = std::chrono::duration<double>(to - from).count();
  return seconds < 120 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.0f} min", seconds / 60);
}

std::string line(const Request& request) {
  return fmt::format(
      "{}  {}@{}  plan {}  {}  ({})\n    {}\n", muster::toString(request.at),
      request.user.empty() ? "?" : printable(request.user),
      request.host.empty() ? "?" : printable(request.host), request.plan_hash.substr(0, 12),
      request.outcome.empty() ? "not ended: it runs, or was stopped" : printable(request.outcome),
      durationOf(request.at, request.ended_at),
      request.command.empty() ? "(command not known)" : printable(request.command));
}

std::string line(const Intent& intent) {
  const auto& action = intent.action;
  return fmt::format("  {}  {:<28} {:<9} {:>9}  '{}' → '{}'{}\n",
                     muster::toString(intent.opened_at), printable(action.id),
                     toString(intent.state), durationOf(intent.opened_at, intent.closed_at),
                     printable(action.from), printable(action.to),
                     intent.outcome.empty() ? "" : "\n      " + printable(intent.outcome));
}

}  // namespace

Result<History> historyOf(Store& store, const std::string& what, std::size_t limit) {
  History out;
  TRY(requests, store.requests(kMaxRequestsSearched));
  if (what.empty()) {
    if (requests.size() > limit) requests.resize(limit);
    out.requests.assign(requests.rbegin(), requests.rend());
    return out;
  }
  TRY(of_node, store.intentsOf(Subject::parse(what), limit));
  std::reverse(of_node.begin(), of_node.end());
  out.intents = std::move(of_node);
  const bool plan = out.intents.empty() && isPlanPrefix(what);
  if (plan) {
    TRY(of_plan, store.intentsOfPlan(what, limit));
    out.intents = std::move(of_plan);
  }
  std::set<std::string> asked;
  for (const auto& intent : out.intents) asked.insert(intent.request);
  for (auto it = requests.rbegin(); it != requests.rend(); ++it)
    if (asked.contains(it->id) || (plan && it->plan_hash.starts_with(what)))
      out.requests.push_back(std::move(*it));
  if (out.intents.empty() && out.requests.empty())
    return fail(ErrorCode::NotFound,
                fmt::format("the journal knows no action of a node {} and no plan whose hash "
                            "begins so; `muster history` lists the plans",
                            what));
  return out;
}

std::string History::text() const {
  std::string out;
  std::multimap<std::string, const Intent*> by_request;
  for (const auto& intent : intents) by_request.emplace(intent.request, &intent);
  auto tell = [&](const std::string& request) {
    const auto [begin, end] = by_request.equal_range(request);
    for (auto it = begin; it != end; ++it) out += line(*it->second);
    by_request.erase(begin, end);
  };
  for (const auto& request : requests) {
    out += line(request);
    tell(request.id);
  }
  if (by_request.empty()) return out.empty() ? "nothing has been asked for yet\n" : out;
  out += "begun before muster noted who asked:\n";
  for (const auto& [request, intent] : by_request) out += line(*intent);
  return out;
}

std::string History::toJson() const {
  nlohmann::json out = {{"requests", nlohmann::json::array()},
                        {"actions", nlohmann::json::array()}};
  for (const auto& request : requests) out["requests"].push_back(lifecycle::toJson(request));
  for (const auto& intent : intents) out["actions"].push_back(lifecycle::toJson(intent));
  return jsonText(out, 2) + "\n";
}

}  // namespace muster::lifecycle
