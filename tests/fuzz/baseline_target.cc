// SPDX-License-Identifier: Apache-2.0
// A baseline may say anything: it is read with its mistakes named, and what is read is solved. The
// input stands under `components`' neighbour keys of one baseline.
#include "firmware/baselines.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"
#include "tests/fuzz/targets.h"

#include <array>

namespace muster::fuzz {
namespace {

constexpr std::size_t kMaxInput = 4096;
constexpr std::size_t kMostComponents = 8;

void baseline(std::string_view input) {
  const std::string text(input);
  (void)inventory::FirmwareConstraint::parse(text);
  std::string yaml =
      "cluster: {name: fuzz}\nnetworks: {provisioning: {cidr: 10.20.0.0/16}}\nprofiles: "
      "{}\nfirmware:\n  b:\n";
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    yaml += "    " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  const auto loaded = inventory::loadText(yaml, "/nowhere/cluster.yaml");
  if (!loaded.cluster) return;
  for (const auto& [name, each] : loaded.cluster->firmware) {
    if (each.components.size() > kMostComponents) continue;
    firmware::Versions running;
    for (std::size_t i = 0; i < each.components.size(); ++i)
      running[each.components[i].name] = i % 2 == 0 ? "1.0" : each.components[i].version + "0";
    (void)firmware::upgradePathOf(each, running);
    (void)each.canonical();
  }
}

constexpr std::array<std::string_view, 26> kWords = {"components:\n",
                                                     "  BIOS: {version: 2.0, file: b.fw, sha256: ",
                                                     "  CPLD: {version: ",
                                                     "  HMC: {version: ",
                                                     "  GPU_*: {version: ",
                                                     "order: [",
                                                     "constraints: [\"",
                                                     " >= 2.0 needs ",
                                                     " < 1.5 excludes ",
                                                     " = 1.0 ",
                                                     "activation: power-cycle",
                                                     "activation: bmc-reset",
                                                     "activation: ac-cycle",
                                                     "activation: none",
                                                     "intermediate: [{version: 1.5, file: v.fw, "
                                                     "sha256: ",
                                                     "pattern: '",
                                                     "([0-9]+)",
                                                     "(a*)*$",
                                                     "device: \"iana:5703\"",
                                                     "minutes: ",
                                                     "file: ",
                                                     "bundle: ",
                                                     "0x14",
                                                     "1.0.0-rc1",
                                                     "kernel",
                                                     "module-version.nvidia"};

}  // namespace

Target baselineTarget() { return {"baseline", kMaxInput, baseline, kWords}; }

}  // namespace muster::fuzz
