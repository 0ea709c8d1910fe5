// SPDX-License-Identifier: Apache-2.0
// Seam: OpenSSL. Hashes, signatures, random tokens, the small certificate authority.
#pragma once

#include "base/log.h"
#include "base/result.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace muster::io {

/// SHA-256, lower-case hex, 64 characters.
std::string sha256Hex(std::string_view data);
/// The same as 32 bytes.
std::string sha256(std::string_view data);
Result<std::string> sha256File(const std::filesystem::path& path);

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  void update(const void* data, std::size_t size_bytes);
  std::string finish();  ///< 32 bytes
  std::string finishHex();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// HMAC-SHA-256 (RFC 2104), 32 bytes.
std::string hmacSha256(std::string_view key, std::string_view message);

std::string toHex(std::string_view bytes);
std::string toBase64(std::string_view bytes);
Result<std::string> fromBase64(std::string_view text);

/// Good enough for keys. Ends the process where there is no randomness: nothing sensible is left to
/// do then.
std::string randomBytes(std::size_t bytes);
/// `bytes` random bytes as URL-safe text.
std::string randomToken(std::size_t bytes = 24);
bool equalConstantTime(std::string_view a, std::string_view b);

/// Ed25519. Keys travel as PEM (private: PKCS#8, public: SPKI).
struct SigningKey {
  Secret private_pem;
  std::string public_pem;
  static Result<SigningKey> generate();
  /// Loads the pair, or makes and stores it (private file mode 0600).
  static Result<SigningKey> loadOrCreate(const std::filesystem::path& private_file);
  std::string id() const;  ///< first 16 hex digits of the SHA-256 of the public key
};
/// Answers the signature as base64.
Result<std::string> sign(const SigningKey& key, std::string_view message);
/// Errors: Corrupt when the signature does not fit
Result<void> verify(std::string_view public_pem, std::string_view message,
                    std::string_view signature_base64);

/// An X.509 identity: key and certificate chain as PEM.
struct TlsIdentity {
  Secret key_pem;
  std::string certificate_pem;
};

/// P-256 key and a certificate request for it. Returned: key PEM and CSR PEM.
struct KeyAndRequest {
  Secret key_pem;
  std::string csr_pem;
};
Result<KeyAndRequest> makeKeyAndRequest(std::string_view common_name);

struct CertificateInfo {
  std::string common_name;
  std::string sha256_fingerprint;  ///< of the DER, lower-case hex
  std::chrono::system_clock::time_point not_before, not_after;
};
Result<CertificateInfo> describeCertificate(std::string_view pem);

/// A small CA: its own self-signed root, server and client certificates.
class CertificateAuthority {
 public:
  /// Loads `folder`/ca.key and ca.crt, or makes them.
  static Result<CertificateAuthority> loadOrCreate(const std::filesystem::path& folder,
                                                   std::string_view common_name);

  const std::string& certificatePem() const { return certificate_pem_; }
  /// SHA-256 of the root's DER: what a node pins on its kernel command line.
  const std::string& fingerprint() const { return fingerprint_; }
  /// A key and certificate for a server with these DNS names and IP addresses.
  Result<TlsIdentity> issueServer(std::string_view common_name,
                                  const std::vector<std::string>& names,
                                  std::chrono::hours lifetime) const;
  /// Signs a server's request: certificate and root as PEM. Subject and names are these, whatever
  /// the request says.
  Result<std::string> signServer(std::string_view csr_pem, std::string_view common_name,
                                 const std::vector<std::string>& names,
                                 std::chrono::hours lifetime) const;
  /// Signs a client request. The subject is `common_name`, whatever the request says.
  Result<std::string> signClient(std::string_view csr_pem, std::string_view common_name,
                                 std::chrono::hours lifetime) const;

 private:
  struct Root;  ///< key and certificate as OpenSSL holds them: reading them from PEM costs more
                ///< than a signature

  std::shared_ptr<const Root> root_;
  std::string certificate_pem_;
  std::string fingerprint_;
};

/// Self-signed server identity, as BMCs have.
Result<TlsIdentity> selfSigned(std::string_view common_name, const std::vector<std::string>& names);

}  // namespace muster::io
