// SPDX-License-Identifier: Apache-2.0
// Whether a server's certificate would be trusted, asked before it is installed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::io {

/// What a client with these roots decides in a handshake: the chain leads to one of them, is in
/// date, is made for servers and names the host. Shape:  leaf and chain (PEM, leaf first) × roots
/// (PEM) × name or address → nothing Errors: InvalidInput (no certificate in it), Denied (would be
/// refused; says why)
Result<void> checkServerChain(std::string_view chain_pem, std::string_view roots_pem,
                              const std::string& host);

}  // namespace muster::io
