// SPDX-License-Identifier: Apache-2.0
// muster inventory import netbox: what NetBox knows beside what is declared, and rows for nodes
// that are not. docs/discovery.md
#pragma once

#include "app/site/options.h"
#include "discovery/netbox_rows.h"

#include <filesystem>
#include <string>

namespace muster::app {

struct NetboxRequest {
  std::string url;                   ///< of its root
  std::filesystem::path token_file;  ///< empty: the environment variable NETBOX_TOKEN
  std::filesystem::path ca;          ///< PEM; empty: the system's authorities
  discovery::NetboxQuery query;
  std::filesystem::path csv;  ///< of nodes: gets the rows; empty: nothing is written
};

struct NetboxImport {
  discovery::NetboxComparison found;
  std::filesystem::path written;  ///< empty: nothing was
};

/// The CSV is replaced only when the whole inventory is valid with the new rows; rows that are
/// there stay byte for byte. Errors: those of NetboxClient::devices, the inventory's
Result<NetboxImport> importFromNetbox(const Options& options, const NetboxRequest& request);

}  // namespace muster::app
