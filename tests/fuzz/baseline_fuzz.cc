// SPDX-License-Identifier: Apache-2.0
// A baseline may say anything: it is read with its mistakes named, and what is read is solved. The
// input stands under `components`' neighbour keys of one baseline.
#include "firmware/baselines.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"
#include "inventory/model/firmware.h"

#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4096) return -1;
  const std::string text(reinterpret_cast<const char*>(data), size);
  (void)muster::inventory::FirmwareConstraint::parse(text);
  std::string yaml =
      "cluster: {name: fuzz}\nnetworks: {provisioning: {cidr: 10.20.0.0/16}}\nprofiles: "
      "{}\nfirmware:\n  b:\n";
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    yaml += "    " + text.substr(at, end - at) + "\n";
    at = end + 1;
  }
  const auto loaded = muster::inventory::loadText(yaml, "/nowhere/cluster.yaml");
  if (!loaded.cluster) return 0;
  for (const auto& [name, baseline] : loaded.cluster->firmware) {
    if (baseline.components.size() > 8) continue;
    muster::firmware::Versions running;
    for (const auto& component : baseline.components) running[component.name] = "1.0";
    (void)muster::firmware::upgradePathOf(baseline, running);
    (void)baseline.canonical();
  }
  return 0;
}
