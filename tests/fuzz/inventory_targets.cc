// SPDX-License-Identifier: Apache-2.0
// What people write and kernels print: inventories, CSV, hostlists, kernel messages. Their authors
// are trusted more than unknown senders, but files come by mail and logs hold what devices say.
#include <algorithm>
#include <array>

#include "agent/tasks/kernel_log.h"
#include "inventory/inventory.h"
#include "inventory/model/user_data.h"
#include "inventory/parse/csv.h"
#include "inventory/parse/hostlist.h"
#include "tests/fuzz/targets.h"

namespace muster::fuzz {
namespace {

void inventory(std::string_view input) {
  const auto loaded = muster::inventory::loadText(input, "/nowhere/cluster.yaml");
  (void)muster::inventory::checkText(loaded);
  (void)muster::inventory::checkJson(loaded);
  if (!loaded.cluster) {
    require(loaded.diagnostics.hasErrors(), "an inventory that is refused says why");
    return;
  }
  (void)muster::inventory::toJson(*loaded.cluster);
  (void)muster::inventory::showText(*loaded.cluster);
  (void)muster::inventory::checkUserData(input);
}

void csv(std::string_view input) {
  Diagnostics diagnostics;
  const auto table = muster::inventory::parseCsv(input, "rows.csv", diagnostics);
  for (const auto& row : table.rows)
    require(row.cells.size() == table.header.size(), "a row has as many cells as the header");
}

void hostlist(std::string_view input) {
  auto names = muster::inventory::expandHostlist(input);
  if (!names) return;
  require(names->size() <= muster::inventory::kMaxHostlistNames, "a hostlist has a bound");
  if (names->size() > 5'000) return;  // folding and expanding a million names is right, but slow
  std::sort(names->begin(), names->end());
  names->erase(std::unique(names->begin(), names->end()), names->end());
  auto again = muster::inventory::expandHostlist(muster::inventory::foldHostlist(*names));
  require(again.has_value(), "a folded hostlist is a hostlist");
  std::sort(again->begin(), again->end());
  require(*again == *names, "a folded hostlist names the same");
}

void kernelLog(std::string_view input) {
  const auto record = agent::parseKernelRecord(input);
  for (const auto text : {input, record ? record->text : std::string_view()})
    if (const auto symptom = agent::symptomOf(text))
      require(!symptom->id.empty(), "a symptom has a name");
}

constexpr std::array<std::string_view, 30> kInventoryWords = {"cluster: {name: ",
                                                              "networks:\n",
                                                              "  provisioning: {cidr: ",
                                                              "profiles:\n",
                                                              "nodes:\n",
                                                              "  - {names: ",
                                                              "images:\n",
                                                              "drivers:\n",
                                                              "firmware:\n",
                                                              "fabric:\n",
                                                              "gates:\n",
                                                              "pools:\n",
                                                              "credentials:\n",
                                                              "from: ",
                                                              "&a ",
                                                              "*a",
                                                              "<<: ",
                                                              "!!binary ",
                                                              "? ",
                                                              "|\n",
                                                              ">\n",
                                                              "---\n",
                                                              "10.20.0.0/16",
                                                              "[001-128]",
                                                              "52:54:00:20:00:07",
                                                              "storage:\n",
                                                              "mounts:\n",
                                                              "discovery:\n",
                                                              "change:\n",
                                                              "racks:\n"};
constexpr std::array<std::string_view, 8> kCsvWords = {
    "\"", "\"\"", ",", ";", "\r\n", "\xef\xbb\xbf", "#", "name,mac,bmc\n"};
constexpr std::array<std::string_view, 8> kHostlistWords = {"[",   "]",         "-",     ",",
                                                            "001", "999999999", "[1-3]", "gpu"};
constexpr std::array<std::string_view, 14> kKernelWords = {"6,339,5140900,-;",
                                                           "NVRM: Xid (PCI:0000:18:00): 79, ",
                                                           "mce: [Hardware Error]: ",
                                                           "EDAC MC0: 1 CE ",
                                                           "I/O error, dev ",
                                                           "nvme nvme0: ",
                                                           "Out of memory: ",
                                                           "pcieport 0000:00:01.0: AER: ",
                                                           "mlx5_core 0000:17:00.0",
                                                           "EXT4-fs error",
                                                           "blocked for more than",
                                                           "thermal",
                                                           " sector ",
                                                           "18446744073709551615"};

constexpr std::array kTargets = {
    Target{"inventory", 16'384, inventory, kInventoryWords},
    Target{"csv", 16'384, csv, kCsvWords},
    Target{"hostlist", 512, hostlist, kHostlistWords},
    Target{"kernel-log", 4'096, kernelLog, kKernelWords},
};

}  // namespace

std::span<const Target> inventoryTargets() { return kTargets; }

}  // namespace muster::fuzz
