// SPDX-License-Identifier: Apache-2.0
// muster inventory: each command prints what a use case of app/ answers, and answers the exit
// status. A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/nodes/netbox_import.h"
#include "app/site/options.h"
#include "cli/exit_code.h"

namespace muster::cli {

int inventoryCheck(const app::Options& options);
struct InventoryShowArgs {
  bool ansible = false;
};
int inventoryShow(const app::Options& options, const InventoryShowArgs& args);
struct NetboxArgs {
  app::NetboxRequest request;
  bool diff = false;  ///< says by its exit status whether both agree
};
int inventoryImportNetbox(const app::Options& options, const NetboxArgs& args);
int inventorySchema(const app::Options& options);

}  // namespace muster::cli
