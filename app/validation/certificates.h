// SPDX-License-Identifier: Apache-2.0
// cert: what a node's certificate says, whether it holds, and a person's decision about it.
#pragma once

#include "app/site/options.h"
#include "validate/validate.h"

#include <optional>
#include <string>
#include <vector>

namespace muster::app {

/// Errors: NotFound (node, certificate)
Result<validate::Certificate> certificateOf(const Options& options, const std::string& node);

struct CertificateVerdict {
  NodeName node;
  Result<void> valid;  ///< an error says why it does not hold
  /// Whose word it is, where gates have not passed; empty: they have.
  std::string override_by = {};
};
/// `node`: empty: all of the inventory.
Result<std::vector<CertificateVerdict>> verifyCertificates(const Options& options,
                                                           const std::string& node);

struct CertificateFile {
  std::filesystem::path certificate, key;
  std::filesystem::path revocations;  ///< empty: Denied, but for `without_revocations`
  bool without_revocations = false;   ///< whether it was revoked does not matter to the caller
  std::filesystem::path as_of;        ///< how old the list is; empty: beside the list
  int max_list_age_hours = 0;         ///< 0: any
  std::int64_t least_number = 0;      ///< of the list: a smaller one is older than one seen before
  std::string node;                   ///< whose it must be; empty: anybody's
};
/// Signature, expiry and revocation, without store and inventory. Errors: Denied, Corrupt,
/// InvalidInput
Result<validate::Certificate> verifyCertificateFile(const CertificateFile& file);

struct CertificateOverride {
  std::string node, reason;
  int hours = 24;
  std::string user = {};  ///< who decides; empty: this process's user
};
/// Lets a node join although its gates have not passed; answers until when. Errors: Denied (the
/// inventory does not allow this user to), Conflict (nothing is known of the node), InvalidInput
/// (no reason)
Result<WallTime> overrideCertificate(const Options& options, const CertificateOverride& request);

/// Where the site's signed list of revocations lies.
std::filesystem::path revocationListOf(const std::filesystem::path& state);
/// The certificate, and the gates passed before, count no more. Answers whether there was one.
Result<bool> revokeCertificate(const Options& options, const std::string& node,
                               const std::string& reason);

/// Writes all certificates and the signed list of revocations. `folder`: empty: the state folder's.
struct CertificateExport {
  std::filesystem::path folder;
  std::size_t certificates = 0;
  std::uint64_t list_number = 0;  ///< 0: nothing was ever revoked
};
Result<CertificateExport> exportCertificates(const Options& options,
                                             const std::filesystem::path& folder);

}  // namespace muster::app
