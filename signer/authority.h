// SPDX-License-Identifier: Apache-2.0
// The site's CA as its users see it: the root, and who signs.
#pragma once

#include "base/io/crypto.h"
#include "signer/site_signer.h"

#include <filesystem>
#include <memory>

namespace muster::signer {

class Authority {
 public:
  /// Signs in this process.
  Authority(const io::CertificateAuthority& ca);
  /// `kept`: a folder for identities of servers. One that is good for a while is taken again when
  /// the signer is away, so that a server starts without it. Errors: Corrupt (no certificate)
  static Result<Authority> signedBy(std::string root_pem, std::shared_ptr<const SiteSigner> signer,
                                    std::filesystem::path kept);

  const std::string& certificatePem() const { return root_pem_; }
  /// SHA-256 of the root's DER: what a node pins on its kernel command line.
  const std::string& fingerprint() const { return fingerprint_; }
  /// A key and certificate for a server of muster with these DNS names and IP addresses.
  Result<io::TlsIdentity> issueServer(const std::vector<std::string>& names,
                                      std::chrono::hours lifetime) const;
  /// Signs a BMC's request: certificate and root as PEM.
  Result<std::string> signBmc(std::string csr_pem, std::string name, std::vector<std::string> names,
                              std::chrono::hours lifetime) const;
  /// Signs an agent's request. The subject is `node`, whatever the request says.
  Result<std::string> signAgent(std::string csr_pem, std::string node,
                                std::chrono::hours lifetime) const;

 private:
  Authority() = default;
  std::string root_pem_, fingerprint_;
  std::shared_ptr<const SiteSigner> signer_;
  std::filesystem::path kept_;
};

}  // namespace muster::signer
