// SPDX-License-Identifier: Apache-2.0
// The client of a site's server, as commands make it.
#pragma once

#include "api/remote_site.h"

#include <filesystem>
#include <memory>
#include <string>

namespace muster::api {

/// `token`: empty: who asks is known by the socket.
inline Result<std::unique_ptr<RemoteSite>> connectTo(const std::filesystem::path& socket,
                                                     std::string token = {}) {
  RemoteSiteOptions options;
  options.socket = socket;
  options.token = std::move(token);
  return RemoteSite::connect(std::move(options));
}

}  // namespace muster::api
