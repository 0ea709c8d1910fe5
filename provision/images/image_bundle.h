// SPDX-License-Identifier: Apache-2.0
// One image as one file, to be carried to another controller:
//
//   a tar of  manifest.json
//   {"digest","format":"muster-image/1","key","made_at","name","signer_public_pem"} + "signature"
//             index.json     the signed index, as the exporting site signed it
//             pack           the chunks
//
// The manifest is signed because it says what the index cannot: for which inputs the image stands
// (`key`) and when it was made. Whoever reads a bundle believes it only when it trusts the key that
// signed both, or knows the file's SHA-256 from elsewhere.
#pragma once

#include "base/clock.h"
#include "base/io/crypto.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "provision/images/packed_image.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::provision {

struct BundleManifest {
  std::string key;  ///< the entry's name: SHA-256 of the build's inputs
  std::string name, digest;
  std::int64_t made_at = 0;  ///< seconds since 1970
  std::string signer_public_pem;
};

/// Whether a file looks like a bundle; cheap.
bool isBundle(const std::filesystem::path& file);

/// Writes a whole entry to `file` (beside, synced, renamed). What is exported is checked first.
/// Errors: Corrupt (the entry), Conflict (there is such a file), Unavailable (disk full)
Result<BundleManifest> exportBundle(const std::filesystem::path& entry, const io::SigningKey& key,
                                    const std::filesystem::path& file);

/// Unpacks a bundle into an empty folder, where it becomes an entry. Nothing of it is believed
/// before its signature. `trusted`: PEMs of the keys that count; empty: any, for a file whose
/// SHA-256 is known from elsewhere. Errors: Corrupt (truncated, changed), Denied (signed by
/// somebody else), InvalidInput (no bundle), Unavailable (disk full)
Result<BundleManifest> readBundle(const std::filesystem::path& file,
                                  const std::vector<std::string>& trusted,
                                  const std::filesystem::path& folder);

/// A bundle that the inventory declares as import, with its SHA-256.
Result<void> takeBundle(const inventory::ImageImport& import, const std::filesystem::path& folder);

struct BundleImport {
  std::filesystem::path cache;
  std::vector<std::string> trusted;  ///< public PEMs; the site's own key is always among them
  bool older = false;  ///< take an image that is older than the one of that name that is here
};
struct Imported {
  PackedImage image;
  std::string signer;  ///< id of the key that signed the bundle
  bool was_here = false;
};
/// Reads a bundle into the cache and signs it with `key`. All of it appears, or nothing.
/// Errors: as readBundle; Conflict (older than what is here)
Result<Imported> importBundle(const std::filesystem::path& file, const BundleImport& options,
                              const io::SigningKey& key);

}  // namespace muster::provision
