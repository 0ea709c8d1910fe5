// SPDX-License-Identifier: Apache-2.0
// The CSV files of nodes, changed by a command. Internal to app/.
#pragma once

#include "app/site/options.h"
#include "inventory/inventory.h"
#include "inventory/model/cluster.h"

#include <filesystem>
#include <string>

namespace muster::app {

inline constexpr std::size_t kMaxCsvBytes = 256u << 20;

/// One line each, behind a line end.
std::string errorsOf(const inventory::Loaded& loaded);

/// As given when it is there, else in the inventory's folder; absolute, as the loader names it.
std::filesystem::path csvPath(const std::filesystem::path& given,
                              const inventory::Cluster& cluster);

/// The text replaces the file only when the whole inventory is valid with it. Errors: InvalidInput,
/// Denied (of the services' user, with what root does about it)
Result<void> replaceCsv(const Options& options, const std::filesystem::path& file,
                        const std::string& text);

}  // namespace muster::app
