// SPDX-License-Identifier: Apache-2.0
// validate checks: the catalogue, from the same rows that agents run. Nothing is read and nobody is
// asked.
#include "base/json_output.h"
#include "cli/commands/validate.h"
#include "validate/gate_params.h"
#include "validate/listed_checks.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
int validateChecks(const app::Options& options) {
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& row : validate::listedChecks())
      out.push_back({{"id", row.id},
                     {"group", row.group},
                     {"level", row.level},
                     {"what", row.what},
                     {"needs", row.needs},
                     {"units", row.units},
                     {"expected_from", row.source},
                     {"what_to_do", row.advice},
                     {"parameters", validate::paramNames(row.id)}});
    std::cout << jsonText(out, 2) << '\n';
    return kOk;
  }
  std::string_view group;
  for (const auto& row : validate::listedChecks()) {
    if (std::exchange(group, row.group) != row.group) std::cout << fmt::format("{}\n", row.group);
    const auto takes = validate::paramNames(row.id);
    std::cout << fmt::format(
        "  {:<23} {:<8} {}{}\n  {:<33}needs {}; expected: {}{}\n", row.id, row.level, row.what,
        row.units.empty() ? "" : fmt::format(" ({})", row.units), "", row.needs, row.source,
        takes.empty() ? "" : fmt::format("; a gate may set {}", takes));
  }
  return kOk;
}

}  // namespace muster::cli
