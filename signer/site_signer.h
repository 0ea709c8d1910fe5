// SPDX-License-Identifier: Apache-2.0
// Who signs for the site: with the key for certificates, and with the CA's. Nobody is handed a text
// of bytes to sign: asked is for one of a few statements and kinds of certificates, each of which
// is read, checked and written anew before it is signed (forms.h). Two implementations: in this
// process (local_signer.h), and the signer's unit (signer_client.h).
#pragma once

#include "base/result.h"

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace muster::signer {

/// What the key for certificates signs.
enum class Statement {
  NodeCertificate,  ///< canonical JSON of a node's certificate, without its signature
  Revocation,       ///< {"before": CHAIN, "number": N, "revocation": {…}}, as canonical JSON
  RevocationList,   ///< canonical JSON of the whole list
  ListAsOf          ///< "at this time list N was the newest"
};

/// What the CA signs. The subject is `name`, whatever the request says of itself.
enum class CertificateKind {
  Agent,       ///< TLS client; `name` is a node's
  Controller,  ///< TLS server of muster itself; `name` is kControllerName
  Bmc          ///< TLS server of a BMC
};
inline constexpr std::string_view kControllerName = "muster";

struct CertificateOrder {
  CertificateKind kind{};
  std::string name;
  std::vector<std::string> names;  ///< DNS names and IP addresses; empty for agents
  std::chrono::hours lifetime{0};
  std::string csr_pem;
  std::string ca_fingerprint = {};  ///< of the CA that must sign; empty: any
};

/// Why nothing was signed, where somebody decides by it (Error::has).
enum class SignerProblem {
  Away,  ///< nobody listens, or no answer came: what waits for a signature may wait on
  Busy   ///< more was asked for than it signs in this time
};

class SiteSigner {
 public:
  virtual ~SiteSigner() = default;
  /// Ed25519, base64. Errors: Denied (not in its form, or beyond a bound), Conflict (the text names
  /// another key), Unavailable (SignerProblem)
  virtual Result<std::string> sign(Statement statement, std::string_view text) const = 0;
  /// The certificate as PEM; of a server with the root behind it. Errors: Denied (a name, a
  /// lifetime or a request beyond its bounds), InvalidInput, Conflict (another CA signs),
  /// Unavailable (SignerProblem)
  virtual Result<std::string> certify(const CertificateOrder& order) const = 0;
};

std::string_view toString(Statement statement);
std::string_view toString(CertificateKind kind);
std::optional<Statement> statementOf(std::string_view word);
std::optional<CertificateKind> certificateKindOf(std::string_view word);

}  // namespace muster::signer
