// SPDX-License-Identifier: Apache-2.0
// muster cert: each command prints what a use case of app/ answers, and answers the exit status.
// A command's options are one struct: app's own request where that says all.
#pragma once

#include "app/site/options.h"
#include "app/validation/certificates.h"
#include "cli/commands/node_args.h"
#include "cli/exit_code.h"

#include <filesystem>

namespace muster::cli {

int certShow(const app::Options& options, const NodeArgs& args);
/// Of a file, when one is named: without store and inventory.
int certVerify(const app::Options& options, const app::CertificateFile& file);
int certRevoke(const app::Options& options, const NodeReasonArgs& args);
struct CertExportArgs {
  std::filesystem::path to;  ///< empty: the state folder
};
int certExport(const app::Options& options, const CertExportArgs& args);
int certOverride(const app::Options& options, const app::CertificateOverride& request);

}  // namespace muster::cli
