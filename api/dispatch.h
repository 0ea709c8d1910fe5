// SPDX-License-Identifier: Apache-2.0
// One request: who asks, may they, is it well formed; then the route's own work, and the answer's
// form. On the reader thread.
#pragma once

#include "api/idempotency.h"
#include "api/route.h"
#include "api/site_reader.h"
#include "base/io/http.h"

namespace muster::api {

/// Who asks, as far as the network's thread knows it: by a token or certificate; nothing: the peer
/// of a Unix socket, whom the reader thread looks up.
struct Caller {
  std::optional<Identity> known;
};

/// The client's own, when it is a clean one, or a new one.
std::string requestIdOf(const io::ServerRequest& request);
std::string newRequestId();

/// Errors: 401, 403 (names the roles that would do), 400, 404
std::expected<Call, Problem> authorize(const ApiRoute& route, SiteReader& reader,
                                       const io::ServerRequest& request, const Caller& caller,
                                       const std::string& request_id);

io::ServerResponse dispatch(const ApiRoute& route, SiteReader& reader,
                            const io::ServerRequest& request, const Caller& caller);

/// Parts of it, for who asks a route's `beside`: on any thread, and on the reader's.
io::ServerResponse respond(const ApiRoute& route, const io::ServerRequest& request, Reply reply,
                           const std::string& request_id);
void count(const ApiRoute& route, const io::ServerResponse& response, SiteReader& reader);
/// A mistake of muster's is answered as one.
Reply guarded(const io::ServerRequest& request, const std::function<Reply()>& work);

/// JSON with ETag, 304, gzip. `request` says what the client takes.
io::ServerResponse encode(const io::ServerRequest& request, Answer answer,
                          const std::string& request_id);

}  // namespace muster::api
