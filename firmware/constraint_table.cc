// SPDX-License-Identifier: Apache-2.0
#include "firmware/constraint_table.h"

#include "lifecycle/model/facet.h"

#include <algorithm>
#include <array>

namespace muster::firmware {
namespace {

using Holds = inventory::FirmwareTerm::Holds;

constexpr std::array<std::string_view, 9> kProbes = {
    "nvml.",  "module.",     "module-version.", "package.",      "rdma.",
    "kernel", "nic-driver.", "nic-firmware.",   "fabricmanager."};

}  // namespace

bool isProbe(std::string_view name) {
  return std::ranges::any_of(kProbes,
                             [name](std::string_view prefix) { return name.starts_with(prefix); });
}

ConstraintTable::ConstraintTable(const inventory::FirmwareBaseline& baseline,
                                 const ComparableVersions& order,
                                 const std::vector<VersionLine>& lines)
    : rows_of_(lines.size()) {
  for (const auto& constraint : baseline.constraints) {
    Row row;
    bool known = false;
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (!lifecycle::matches(constraint.then.component, lines[line].name)) continue;
      known = true;
      for (std::size_t place = 0; place < lines[line].versions.size(); ++place) {
        const auto holds =
            order.holds(constraint.then, lines[line].name, lines[line].versions[place]);
        if (holds == Holds::Unknown || (holds == Holds::Yes) == constraint.excludes)
          row.right.push_back({line, place});
      }
    }
    const bool nobody = !known && !constraint.excludes && !isProbe(constraint.then.component);
    for (std::size_t line = 0; line < lines.size(); ++line) {
      if (!lifecycle::matches(constraint.when.component, lines[line].name)) continue;
      for (std::size_t place = 0; place < lines[line].versions.size(); ++place) {
        const auto applies =
            order.holds(constraint.when, lines[line].name, lines[line].versions[place]);
        if (applies != Holds::No)
          row.left.push_back({line, place, nobody || applies == Holds::Unknown});
      }
    }
    if (row.left.empty()) continue;
    std::vector<std::size_t> touched;
    for (const auto* side : {&row.left, &row.right})
      for (const auto& literal : *side) touched.push_back(literal.line);
    std::ranges::sort(touched);
    touched.erase(std::ranges::unique(touched).begin(), touched.end());
    for (const std::size_t line : touched) rows_of_[line].push_back(rows_.size());
    rows_.push_back(std::move(row));
  }
}

bool ConstraintTable::State::possible(const Literal& literal) const {
  if (at[literal.line] == literal.place) return true;
  return at[literal.line] + 1 == literal.place &&
         std::ranges::find(moving, literal.line) != moving.end();
}

bool ConstraintTable::broken(const Row& row, const State& state) {
  return std::ranges::any_of(row.left, [&](const Literal& left) {
    if (!state.possible(left)) return false;
    return left.alone || std::ranges::any_of(row.right, [&](const Literal& right) {
             // A component beside itself has one version.
             return (right.line != left.line || right.place == left.place) && state.possible(right);
           });
  });
}

bool ConstraintTable::mayMove(const Places& at, const std::vector<std::size_t>& moving) const {
  static const std::vector<std::size_t> kNobody;
  return std::ranges::all_of(moving, [&](std::size_t line) {
    return std::ranges::all_of(rows_of_[line], [&](std::size_t index) {
      const Row& row = rows_[index];
      return !broken(row, {at, moving}) || broken(row, {at, kNobody});
    });
  });
}

}  // namespace muster::firmware
