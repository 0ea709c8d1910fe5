// SPDX-License-Identifier: Apache-2.0
// The site's key for certificates as its users see it: the public half, and who signs.
#pragma once

#include "base/io/crypto.h"
#include "signer/site_signer.h"

#include <memory>

namespace muster::signer {

struct CertificateKey {
  /// Signs in this process.
  CertificateKey(const io::SigningKey& key);
  CertificateKey(std::string public_half, std::shared_ptr<const SiteSigner> by)
      : public_pem(std::move(public_half)), signer(std::move(by)) {}

  std::string public_pem;  ///< of the key that signs; behind it the one before, while it is rotated
  std::shared_ptr<const SiteSigner> signer;

  std::string id() const;  ///< as SigningKey::id
  /// `bytes`: what the statement must have been signed as. Errors: those of SiteSigner, Conflict
  /// (the signer has another key than this one)
  Result<std::string> sign(Statement statement, std::string_view text,
                           std::string_view bytes) const;
};

}  // namespace muster::signer
