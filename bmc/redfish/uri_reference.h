// SPDX-License-Identifier: Apache-2.0
// Links of a Redfish service are URI references (DSP0266 6.1, RFC 3986 4.1): mostly paths from the
// root, but whole addresses and relative ones are allowed too.
#pragma once

#include "base/result.h"

#include <string>
#include <string_view>

namespace muster::bmc {

/// Shape:  service address × path of the resource that holds the link × link → path from the root
/// Errors: Corrupt (another host: it is not followed; or no reference at all)
/// A whole address of the same host and port counts as its path.
/// Source: RFC 3986 5.2, without "." and ".." segments, which Redfish services do not send
Result<std::string> resolveReference(const std::string& base_url, std::string_view from,
                                     const std::string& link);

}  // namespace muster::bmc
