// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/inventory.h"

#include "base/json_output.h"
#include "cli/view/netbox_view.h"
#include "inventory/export/ansible.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"

#include <nlohmann/json.hpp>

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

int inventoryImportNetbox(const app::Options& options, const NetboxArgs& args) {
  if (args.request.url.starts_with("http://"))
    std::cerr << "muster: the token travels in the clear: use https://\n";
  const auto imported = app::importFromNetbox(options, args.request);
  if (!imported) return report(imported.error());
  std::cout << (options.json ? jsonText(netboxJson(*imported)) + "\n" : netboxText(*imported));
  return args.diff && !imported->found.isSame() ? kChanges : kOk;
}

int inventorySchema(const app::Options&) {
  std::cout << inventory::schemaJson();
  return kOk;
}

}  // namespace muster::cli
