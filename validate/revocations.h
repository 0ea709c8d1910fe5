// Revocations: certificates that count no more although nothing they are bound to has moved. One signed list beside the certificates, which can
// be carried to wherever certificates are verified offline.
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/crypto.h"

#include <filesystem>
#include <string>
#include <vector>

namespace muster::validate {

struct Revocation {
  std::string certificate;  ///< Certificate::id; empty: the node had none, but what it passed before counts no more
  NodeName node;
  WallTime at{};
  std::string by, reason;
};

struct RevocationList {
  std::int64_t number = 0;  ///< grows with every change: an older list is known by it
  WallTime issued_at{};
  std::vector<Revocation> revoked;

  const Revocation* find(std::string_view certificate_id) const;
  /// The newest of the node.
  const Revocation* newestOf(const NodeName& node) const;
  Result<std::string> signedJson(const io::SigningKey& key) const;
  /// Errors: Corrupt (no such list, or the signature does not fit)
  static Result<RevocationList> fromJson(std::string_view text, std::string_view public_pem);
};

/// The list of a folder of certificates. A list that cannot be read or is not signed by this key is an error, never an empty list.
class Revocations {
 public:
  Revocations(std::filesystem::path folder, io::SigningKey key) : file_(folder / kFile), key_(std::move(key)) {}
  Result<RevocationList> read() const;
  /// Errors: InvalidInput (no reason), those of read
  Result<void> add(Revocation revocation);
  const std::filesystem::path& file() const { return file_; }

  static constexpr std::string_view kFile = "revocations.json.signed";  ///< no node is called so

 private:
  std::filesystem::path file_;
  io::SigningKey key_;
};

}  // namespace muster::validate
