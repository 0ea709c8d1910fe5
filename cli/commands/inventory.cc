// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/inventory.h"

#include "inventory/export/ansible.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"

#include <iostream>

namespace muster::cli {

int inventoryCheck(const app::Options& options) {
  const auto loaded = app::loadDeclared(options);
  std::cout << (options.json ? inventory::checkJson(loaded) : inventory::checkText(loaded));
  return loaded.cluster ? kOk : kFailed;
}

int inventoryShow(const app::Options& options, const InventoryShowArgs& args) {
  const auto cluster = app::loadCluster(options);
  if (!cluster) return report(cluster.error());
  if (args.ansible)
    std::cout << inventory::ansibleInventory(*cluster);
  else
    std::cout << (options.json ? inventory::toJson(*cluster) : inventory::showText(*cluster));
  return kOk;
}

int inventorySchema(const app::Options&) {
  std::cout << inventory::schemaJson();
  return kOk;
}

}  // namespace muster::cli
