// SPDX-License-Identifier: Apache-2.0
#include "api/remote_tokens.h"

#include "api/answer_members.h"
#include "api/record_values.h"
#include "api/server_connection.h"
#include "base/json_members.h"

namespace muster::api {

using nlohmann::json;

Result<std::vector<Token>> RemoteTokens::list() {
  TRY(answer, server_.get("/tokens"));
  TRY(items, itemsOf(answer));
  return madeOf(*items, tokenFrom);
}

Result<CreatedToken> RemoteTokens::create(const TokenRequest& request) {
  json body = {{"name", request.name}, {"role", toString(request.role)}, {"hours", request.hours}};
  if (!request.owner.empty()) body["owner"] = request.owner;
  if (!request.scope.pools.empty()) body["pools"] = request.scope.pools;
  if (!request.scope.racks.empty()) body["racks"] = request.scope.racks;
  if (!request.scope.nodes.empty()) body["nodes"] = request.scope.nodes;
  TRY(answer, server_.post("/tokens", body));
  TRY(token, tokenFrom(answer));
  auto secret = textOf(answer, "token");
  if (secret.empty()) return fail(ErrorCode::Corrupt, server_.where() + " answers no token");
  return CreatedToken{std::move(token), std::move(secret)};
}

Result<void> RemoteTokens::revoke(const std::string& id_or_name) {
  io::HttpRequest request;
  request.method = "DELETE";
  TRY_OK(server_.ask(std::move(request), "/tokens/" + io::percentEncode(id_or_name)));
  return {};
}

}  // namespace muster::api
