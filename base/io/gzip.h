// SPDX-License-Identifier: Apache-2.0
// gzip for HTTP answers (zlib).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::io {

/// One gzip member (RFC 1952). Nothing when zlib refuses, which it does for want of memory alone.
std::optional<std::string> gzip(std::string_view text);

/// Whether an Accept-Encoding header takes gzip (RFC 9110, 12.5.3): named, or "*", and not with
/// ";q=0".
bool acceptsGzip(std::string_view accept_encoding);

}  // namespace muster::io
