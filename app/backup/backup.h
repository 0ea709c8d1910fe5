// SPDX-License-Identifier: Apache-2.0
// backup, restore, store check: a site's memory as one sealed file (docs/backup.md, docs/adr/0302).
//
// In it: the store, STATE/keys, STATE/ca, the folder of the inventory with its secrets, and the
// indexes of images. Not in it: packs of images (build or copy them), recorded consoles, raw gate
// results, logs.
#pragma once

#include "app/site/options.h"
#include "base/clock.h"
#include "base/log.h"
#include "signer/adoption.h"

#include <string>
#include <vector>

namespace muster::app {

struct BackupReport {
  std::size_t files = 0;
  std::uint64_t bytes = 0;            ///< of the sealed file
  std::vector<std::string> left_out;  ///< what of the inventory's folder is not in it, and why
};
/// Others may work meanwhile: the store is copied as it is at one moment. Effect: the file is whole
/// or not there; what was there before under its name stays until then. Errors: InvalidInput (the
/// passphrase is short, the file is in the state folder), Denied (the signer holds keys, which root
/// alone reads: takeSignerKeys), NotFound (nothing was done here yet),
/// Conflict (keys are being rotated), those of the store and the disk
Result<BackupReport> makeBackup(const Options& options, const std::filesystem::path& file,
                                const Secret& passphrase);

/// For root, before it becomes the services' user: the keys that the signer holds, which belong
/// into a backup. Nothing for who is not root, and where the state folder has all keys itself.
/// Errors: those of the disk
Result<void> takeSignerKeys(Options& options,
                            const std::filesystem::path& folder = signer::kSignerFolder);

struct RestoreReport {
  std::string cluster, made_at, made_by;  ///< of the backup
  int schema = 0;
  std::size_t files = 0;
  std::filesystem::path inventory;  ///< where the copy of the inventory lies now
  std::filesystem::path replaced;   ///< where the state folder of before is; empty: there was none
};
/// Makes the state folder anew from the file. Effect: killed anywhere, the state folder is as it
/// was or restored whole. What was under way in it is given up, permissions to wipe are taken back,
/// and tokens and terms are raised (lifecycle/store/store_copy.h). `replace`: a state folder that
/// holds something is moved aside. Errors: Conflict (not empty, in use), Denied (another
/// passphrase), Corrupt (cut off, changed, not a backup, of a newer muster), those of the disk
Result<RestoreReport> restoreBackup(const Options& options, const std::filesystem::path& file,
                                    const Secret& passphrase, bool replace);

struct StoreCheckLine {
  std::string what;
  bool ok = false;
  std::string text;
};
/// Integrity, schema, chain of the journal, keys. Reads only.
Result<std::vector<StoreCheckLine>> checkStore(const Options& options);

}  // namespace muster::app
