// SPDX-License-Identifier: Apache-2.0
// Internal to base/io: which certificate requests the authority signs. What is not on the lists is
// refused.
#pragma once

#include "base/io/openssl.h"

#include <string_view>

namespace muster::io {

/// The smallest RSA key that a requester may show. Agents and operators choose theirs; a BMC's
/// firmware has made its own, and HPE's makes 2048 bits only.
enum class RequestPolicy { Client, BmcServer };

inline constexpr int kMinClientRsaBits = 3072;
inline constexpr int kMinBmcRsaBits = 2048;
inline constexpr int kMaxRsaBits = 8192;  ///< checking a larger key's signature holds a thread
inline constexpr std::size_t kMaxRequestBytes = 16u << 10;
inline constexpr int kMaxRequestExtensions = 16;

/// Reads a request and checks it: size, count of extensions, key (RSA, P-256, P-384, Ed25519), hash
/// of the signature (SHA-256, SHA-384, SHA-512, Ed25519), no wish to be an authority, signed by its
/// own key, one PEM block and nothing around it. Subject and names in it are not read at all.
/// Errors: InvalidInput (no request, text beside it, or larger than allowed), Denied (what is not
/// on a list, or whoever sent it does not hold the key)
Result<Handle<X509_REQ>> acceptRequest(std::string_view csr_pem, RequestPolicy policy);

}  // namespace muster::io
