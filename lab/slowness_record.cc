// SPDX-License-Identifier: Apache-2.0
#include "lab/slowness_record.h"

#include "base/json_input.h"
#include "base/json_output.h"

#include <algorithm>

namespace muster::lab {
namespace {

constexpr std::size_t kMiddleOf = 3;
constexpr double kTolerance =
    1.15;  ///< above a step that still is this step: an idle machine never measures 1 exactly

std::size_t stepOf(double slowness) {
  const auto at = std::find_if(kSlownessSteps.begin(), kSlownessSteps.end(),
                               [slowness](double step) { return slowness <= step * kTolerance; });
  return static_cast<std::size_t>(std::min(at, kSlownessSteps.end() - 1) - kSlownessSteps.begin());
}

}  // namespace

void SlownessRecord::add(WallTime at, double measured) {
  if (last_.size() == kMiddleOf) last_.erase(last_.begin());
  last_.push_back(measured);
  auto sorted = last_;
  std::sort(sorted.begin(), sorted.end());
  const auto step = stepOf(sorted[(sorted.size() - 1) / 2]);
  for (std::size_t each = 0; each <= step; ++each) seen_[each] = at;
}

double SlownessRecord::factor(WallTime now) const {
  for (auto step = kSlownessSteps.size(); step-- > 0;)
    if (seen_[step] && now - *seen_[step] <= kSlownessCounts) return kSlownessSteps[step];
  return kSlownessSteps.front();
}

void SlownessRecord::merge(const SlownessRecord& other) {
  for (std::size_t step = 0; step < seen_.size(); ++step)
    seen_[step] = std::max(seen_[step], other.seen_[step]);
}

std::string SlownessRecord::toJson() const {
  nlohmann::json root = nlohmann::json::array();
  for (std::size_t step = 0; step < seen_.size(); ++step)
    if (seen_[step])
      root.push_back(
          {{"times_slower", kSlownessSteps[step]}, {"last_seen", toString(*seen_[step])}});
  return jsonText(root, 2) + "\n";
}

SlownessRecord SlownessRecord::fromJson(std::string_view text) {
  SlownessRecord out;
  const auto root = jsonOrNone(text, kKeptJson);
  if (!root.is_array()) return out;
  for (const auto& row : root) {
    if (!row.is_object() || !row.contains("times_slower") || !row["times_slower"].is_number() ||
        !row.contains("last_seen") || !row["last_seen"].is_string())
      continue;
    const auto step =
        std::find(kSlownessSteps.begin(), kSlownessSteps.end(), row["times_slower"].get<double>());
    const auto at = parseWallTime(row["last_seen"].get_ref<const std::string&>());
    if (step != kSlownessSteps.end() && at)
      out.seen_[static_cast<std::size_t>(step - kSlownessSteps.begin())] = *at;
  }
  return out;
}

}  // namespace muster::lab
