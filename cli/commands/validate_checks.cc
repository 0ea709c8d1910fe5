// SPDX-License-Identifier: Apache-2.0
// validate checks: the catalogue, from the same rows that agents run. Nothing is read and nobody is
// asked.
#include "base/json_output.h"
#include "cli/commands/validate.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/gates.h"
#include "validate/checks/check_row.h"
#include "validate/gate_params.h"
#include "validate/gates.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>

namespace muster::cli {
namespace {

using inventory::GateLevel;

struct Row {
  std::string_view id, group, level, what, needs, units, source, advice;
  std::string takes() const { return validate::paramNames(id); }
};

std::string_view word(GateLevel level) {
  switch (level) {
    case GateLevel::Quick:
      return "quick";
    case GateLevel::Medium:
      return "medium";
    case GateLevel::Long:
      return "long";
    case GateLevel::Soak:
      return "soak";
  }
  return "?";
}

/// With those between two nodes, which no agent runs alone. `rounds` are isolation's, and no
/// gate's.
std::vector<Row> rows() {
  std::vector<Row> out;
  for (const auto& row : validate::catalogue())
    out.push_back({row.id, row.group, row.group == "rounds" ? "isolate" : word(row.level), row.what,
                   row.needs, row.units, row.source, row.advice});
  out.push_back(
      {"rdma.pair", "rdma", "quick",
       "ib_write_bw and ib_write_lat on every RDMA device against the partner's of the same "
       "rail, its link's errors meanwhile",
       "perftest, two nodes", "Gb/s, µs", "floor of device and link, ceiling of device",
       validate::adviceFor("rdma.pair")});
  out.push_back({"gdr.pair", "gdr", "quick",
                 "the same from GPU memory to GPU memory, every rail with the GPU of its side",
                 "perftest built with CUDA, two nodes", "Gb/s, µs", "skus.json by the GPU's model",
                 validate::adviceFor("gdr.pair")});
  std::sort(out.begin(), out.end(), [](const Row& a, const Row& b) {
    return std::pair(a.group, a.id) < std::pair(b.group, b.id);
  });
  return out;
}

}  // namespace

int validateChecks(const app::Options& options) {
  if (options.json) {
    nlohmann::json out = nlohmann::json::array();
    for (const auto& row : rows())
      out.push_back({{"id", row.id},
                     {"group", row.group},
                     {"level", row.level},
                     {"what", row.what},
                     {"needs", row.needs},
                     {"units", row.units},
                     {"expected_from", row.source},
                     {"advice", row.advice},
                     {"parameters", row.takes()}});
    std::cout << jsonText(out, 2) << '\n';
    return kOk;
  }
  std::string_view group;
  for (const auto& row : rows()) {
    if (std::exchange(group, row.group) != row.group) std::cout << fmt::format("{}\n", row.group);
    const auto takes = row.takes();
    std::cout << fmt::format(
        "  {:<18}{:<9}{}{}\n  {:<27}needs {}; expected: {}{}\n", row.id, row.level, row.what,
        row.units.empty() ? "" : fmt::format(" ({})", row.units), "", row.needs, row.source,
        takes.empty() ? "" : fmt::format("; a gate may set {}", takes));
  }
  return kOk;
}

}  // namespace muster::cli
