// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/io/http.h"

#include <string>
#include <string_view>

namespace muster::api {

/// Valid as long as the request; empty where it has no such header.
inline std::string_view headerOf(const io::ServerRequest& request, const std::string& name) {
  const auto found = request.headers.find(name);
  return found == request.headers.end() ? std::string_view() : std::string_view(found->second);
}

}  // namespace muster::api
