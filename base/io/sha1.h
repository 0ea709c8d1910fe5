// SPDX-License-Identifier: Apache-2.0
// SHA-1, for BitTorrent's pieces and nothing else: what must be trusted is hashed by crypto.h.
#pragma once

#include <string>
#include <string_view>

namespace muster::io {

/// 20 bytes.
std::string sha1(std::string_view data);

}  // namespace muster::io
