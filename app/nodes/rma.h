// SPDX-License-Identifier: Apache-2.0
// rma: everything that is known of a node, in one archive for whoever repairs it.
#pragma once

#include "app/site/options.h"

namespace muster::app {

/// Asks the node's BMC too. Answers how many files the archive has. Errors: NotFound (node,
/// nothing was done here yet), InvalidInput (the archive's name)
Result<std::size_t> writeRmaArchive(const Options& options, const NodeName& node,
                                    const std::filesystem::path& out);

}  // namespace muster::app
