// SPDX-License-Identifier: Apache-2.0
#include "monitor/health_history.h"

#include "base/json_input.h"
#include "lifecycle/model/json.h"

#include <algorithm>

namespace muster::monitor {
namespace {

using nlohmann::json;

std::string keyOf(const NodeName& node) { return "health." + node.str(); }

json print(const std::vector<HealthHistory::Mark>& marks) {
  json out = json::array();
  for (const auto& mark : marks)
    out.push_back({{"at", muster::toString(mark.at)}, {"id", mark.id}});
  return out;
}

Result<std::vector<HealthHistory::Mark>> parse(const json& list, WallTime now) {
  std::vector<HealthHistory::Mark> out;
  if (!list.is_array())
    return fail(ErrorCode::Corrupt, "a node's health history in the store is damaged");
  for (const auto& item : list) {
    if (!item.is_object())
      return fail(ErrorCode::Corrupt, "a node's health history in the store is damaged");
    TRY(at, parseWallTime(item.value("at", "")));
    if (at + kRemembered > now) out.push_back({at, item.value("id", "")});
  }
  return out;
}

bool knows(const std::vector<HealthHistory::Mark>& marks, const std::string& id) {
  return std::any_of(marks.begin(), marks.end(), [&id](const auto& mark) { return mark.id == id; });
}

bool add(std::vector<HealthHistory::Mark>& marks, const std::string& id, WallTime at) {
  if (knows(marks, id)) return false;
  marks.push_back({at, id});
  if (marks.size() > kMaxRemembered) marks.erase(marks.begin());
  return true;
}

}  // namespace

Result<HealthHistory> HealthHistory::read(lifecycle::Store& store, const NodeName& node,
                                          WallTime now) {
  HealthHistory out;
  TRY(text, store.getValue(keyOf(node)));
  if (!text || text->empty()) return out;
  const auto all = jsonOrNone(*text, kKeptJson);
  if (!all.is_object())
    return fail(ErrorCode::Corrupt,
                "the health history of " + node.str() + " in the store is damaged");
  TRY(reboots, parse(all.value("reboots", json::array()), now));
  out.reboots_ = std::move(reboots);
  TRY(gpu_resets, parse(all.value("gpu_resets", json::array()), now));
  out.gpu_resets_ = std::move(gpu_resets);
  const auto seen = all.value("seen", json::object());
  for (const auto& [symptom, list] : seen.items()) {
    TRY(marks, parse(list, now));
    if (!marks.empty()) out.seen_.emplace(symptom, std::move(marks));
  }
  return out;
}

int HealthHistory::bootsBefore(const std::string& symptom, const std::string& boot) const {
  const auto found = seen_.find(symptom);
  if (found == seen_.end()) return 0;
  return static_cast<int>(std::count_if(found->second.begin(), found->second.end(),
                                        [&boot](const Mark& mark) { return mark.id != boot; }));
}

bool HealthHistory::knowsReboot(const std::string& intent) const { return knows(reboots_, intent); }

bool HealthHistory::see(const std::string& symptom, const std::string& boot, WallTime at) {
  if (!seen_.contains(symptom) && seen_.size() >= kMaxRemembered) return false;
  return add(seen_[symptom], boot, at);
}

bool HealthHistory::rebooted(const std::string& intent, WallTime at) {
  return add(reboots_, intent, at);
}

bool HealthHistory::knowsGpuReset(const std::string& boot) const {
  return knows(gpu_resets_, boot);
}

bool HealthHistory::gpusReset(const std::string& boot, WallTime at) {
  return add(gpu_resets_, boot, at);
}

Result<void> HealthHistory::write(lifecycle::Store& store, const NodeName& node) const {
  json seen = json::object();
  for (const auto& [symptom, marks] : seen_) seen[symptom] = print(marks);
  return store.putValue(keyOf(node), lifecycle::canonical({{"seen", std::move(seen)},
                                                           {"reboots", print(reboots_)},
                                                           {"gpu_resets", print(gpu_resets_)}}));
}

}  // namespace muster::monitor
