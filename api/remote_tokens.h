// SPDX-License-Identifier: Apache-2.0
// Tokens of a site that is asked over HTTP. They are the API's own, and no use case of app/.
#pragma once

#include "api/tokens.h"

namespace muster::api {

class ServerConnection;

class RemoteTokens {
 public:
  /// `server` is borrowed.
  explicit RemoteTokens(ServerConnection& server) : server_(server) {}
  Result<std::vector<Token>> list();
  /// Errors: as Tokens::create
  Result<CreatedToken> create(const TokenRequest& request);
  /// Errors: NotFound
  Result<void> revoke(const std::string& id_or_name);

 private:
  ServerConnection& server_;
};

}  // namespace muster::api
