// SPDX-License-Identifier: Apache-2.0
// Certificates of clients that a server asks for and does not require. The handshake proves that
// the client holds the key, and lets everybody in; whether the certificate is believed is decided
// here, for each request anew, so that a refusal can say what is wrong and a revocation counts for
// connections that are open.
#pragma once

#include "base/clock.h"
#include "base/result.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::io {

inline constexpr std::size_t kMaxShownChainBytes = 32u << 10;

/// What a client has shown in its handshake, and holds the key of. Nothing of it is believed yet.
struct ShownCertificate {
  std::vector<std::string> chain_der;  ///< the client's own first
  std::string digest;                  ///< SHA-256 over the chain, hex
};

enum class CertificateFault {
  None,
  Unreadable,
  Foreign,  ///< no chain to an authority that is believed
  Expired,
  NotYetValid,
  Revoked,
  RevocationUnknown,  ///< there is no list of its authority that counts now
  OtherPurpose        ///< not made for clients
};

/// What a certificate says of whom it is for. Words with control characters, and a common name
/// beside another one, are left out: they name nobody.
struct CertificateNames {
  std::string subject;  ///< one printable line (RFC 2253)
  std::string common_name;
  std::vector<std::string> organizations, units;  ///< of the subject
  std::vector<std::string> emails, dns, uris;     ///< alternative names
  WallTime not_after{};
  std::string key_id;  ///< SHA-256 of the public key, hex
};

struct EvaluatedCertificate {
  CertificateNames names;  ///< where the fault is Unreadable: empty
  CertificateFault fault = CertificateFault::None;
  std::string why;  ///< in OpenSSL's words
};

/// The authorities that are believed, and what they have revoked.
class ClientTrust {
 public:
  /// `ca_pem`: one or more authorities; one that is signed by another is believed by itself.
  /// `crl_pem`: nothing: nobody asks whether something is revoked; else every authority of a chain
  /// needs a list in it that is in date, from the one in `ca_pem` down.
  /// Errors: InvalidInput (nothing readable in it)
  static Result<ClientTrust> make(std::string_view ca_pem, std::optional<std::string_view> crl_pem);

  /// Shape:  what a client has shown × now → names and fault
  EvaluatedCertificate evaluate(const ShownCertificate& shown, WallTime now) const;
  /// Of the authorities: SHA-256 of the DER, hex.
  const std::vector<std::string>& fingerprints() const { return fingerprints_; }

 private:
  std::shared_ptr<void> store_;  ///< X509_STORE
  std::vector<std::string> fingerprints_;
  bool checks_revocation_ = false;
};

}  // namespace muster::io
