// SPDX-License-Identifier: Apache-2.0
// The name of a key: what http.h's client_key_id is.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace muster::io {

/// SHA-256 of the public key that the certificate is for, hex. Errors: Corrupt (no certificate)
Result<std::string> keyIdOf(std::string_view certificate_pem);

}  // namespace muster::io
