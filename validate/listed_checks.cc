// SPDX-License-Identifier: Apache-2.0
#include "validate/listed_checks.h"

#include "inventory/model/gates.h"
#include "validate/checks/check_row.h"
#include "validate/gates.h"

#include <algorithm>
#include <utility>

namespace muster::validate {
namespace {

using inventory::GateLevel;

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

}  // namespace

std::vector<ListedCheck> listedChecks() {
  std::vector<ListedCheck> out;
  for (const auto& row : catalogue())
    out.push_back({row.id, row.group, row.group == "rounds" ? "isolate" : word(row.level), row.what,
                   row.needs, row.units, row.source, row.advice});
  out.push_back(
      {"rdma.pair", "rdma", "quick",
       "ib_write_bw and ib_write_lat on every RDMA device against the partner's of the same "
       "rail, its link's errors meanwhile",
       "perftest, two nodes", "Gb/s, µs", "floor of device and link, ceiling of device",
       adviceFor("rdma.pair")});
  out.push_back({"gdr.pair", "gdr", "quick",
                 "the same from GPU memory to GPU memory, every rail with the GPU of its side",
                 "perftest built with CUDA, two nodes", "Gb/s, µs", "skus.json by the GPU's model",
                 adviceFor("gdr.pair")});
  out.push_back({"bmc.log", "bmc", "quick",
                 "no new critical entry in the BMC's event logs since the gate began; warnings are "
                 "findings",
                 "a BMC that shows its logs", "entries", "none may be there",
                 adviceFor("bmc.log")});
  out.push_back({"bmc.power", "bmc", "quick",
                 "every power supply there, well, and redundant as the BMC says",
                 "a BMC that shows them", "power supplies", "the BMC, or a parameter",
                 adviceFor("bmc.power")});
  std::sort(out.begin(), out.end(), [](const ListedCheck& a, const ListedCheck& b) {
    return std::pair(a.group, a.id) < std::pair(b.group, b.id);
  });
  return out;
}

}  // namespace muster::validate
