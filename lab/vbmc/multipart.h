// SPDX-License-Identifier: Apache-2.0
// multipart/form-data as Redfish pushes use it: named parts, the image by reference.
#pragma once

#include "base/result.h"

#include <map>
#include <string>
#include <string_view>

namespace muster::lab::vbmc {

/// Part name → content, views into `body`.
/// Errors: InvalidInput (no boundary, unterminated part)
Result<std::map<std::string, std::string_view>> splitMultipart(std::string_view content_type,
                                                               std::string_view body);

}  // namespace muster::lab::vbmc
