// SPDX-License-Identifier: Apache-2.0
// backup, restore, store check.
#pragma once

#include "app/backup/backup.h"
#include "cli/exit_code.h"

#include <filesystem>

namespace muster::cli {

struct BackupArgs {
  std::filesystem::path file;
  std::filesystem::path passphrase_file;  ///< empty: it is asked for
};
int backup(const app::Options& options, const BackupArgs& args);

struct RestoreArgs {
  std::filesystem::path file;
  std::filesystem::path passphrase_file;
  bool replace = false;
};
int restore(const app::Options& options, const RestoreArgs& args);

int storeCheck(const app::Options& options);

}  // namespace muster::cli
