// SPDX-License-Identifier: Apache-2.0
// Certificates and revocations that a muster of before left as files of its state folder, taken
// into the store; and whose key signs there.
#pragma once

#include "base/io/crypto.h"
#include "lifecycle/store/store.h"
#include "signer/certificate_key.h"

#include <filesystem>

namespace muster::validate {

/// All that sign into one store have one key: who has another would find every certificate void.
/// Errors: Conflict (the store's certificates are signed by another key)
Result<void> requireSiteKey(lifecycle::Store& store, const signer::CertificateKey& key);
/// The same, and from now on it is this key. For whoever is about to store what it has signed.
Result<void> bindSiteKey(lifecycle::Store& store, const signer::CertificateKey& key);

/// Whether the folder was taken into this store before: its files are copies now.
Result<bool> wasMigrated(lifecycle::Store& store, const std::filesystem::path& folder);

/// Takes into the store what a folder holds and the store does not: revocations, and certificates
/// issued later than the store's. Again and by several at once it does no harm. A look at the
/// folder's time when nothing has changed there. Errors: Corrupt (files are damaged that the store
/// has nothing in place of: they are named, and nothing was taken), Conflict (requireSiteKey)
Result<void> migrateCertificates(lifecycle::Store& store, const signer::CertificateKey& key,
                                 const std::filesystem::path& folder);

}  // namespace muster::validate
