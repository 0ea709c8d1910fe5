// SPDX-License-Identifier: Apache-2.0
// Seam: libcjose. The keys of a provider (RFC 7517), and whether a token is signed by one of them
// (RFC 7515). What a token may be signed with is a table of its own, looked at before the library
// sees the token: no "none", and nothing that a public key could be taken for the secret of.
#pragma once

#include "base/result.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace muster::api {

inline constexpr std::size_t kMaxIdTokenBytes = 64u << 10;

class KeySet {
 public:
  /// Keys that verify no signature of the table are left out. Errors: Corrupt (no key set, or none
  /// that can be used)
  static Result<KeySet> parse(std::string_view json);

  /// Shape:  token in compact form → payload
  /// Errors: NotFound (signed with a key that is not here: the set may have changed since), Denied
  /// (its algorithm, its kind, its signature), Corrupt (no token)
  Result<std::string> verify(std::string_view token) const;

  std::size_t size() const { return keys_.size(); }

 private:
  struct Key {
    std::string id, algorithm;  ///< empty: it does not say
    std::string kind, curve;    ///< "RSA"; "EC" and "P-256"
    std::shared_ptr<void> key;  ///< cjose_jwk_t
  };
  std::vector<Key> keys_;
};

/// Errors: Corrupt (another letter than those of RFC 4648, 5; a length that none has)
Result<std::string> fromBase64Url(std::string_view text);

}  // namespace muster::api
