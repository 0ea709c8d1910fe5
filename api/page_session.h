// SPDX-License-Identifier: Apache-2.0
// How a browser says who it is. The page sends a token once; it comes back as a cookie that no
// script can read and that no other site can make a browser send. The cookie is the token, so a
// session ends with it: at its end, or when it is revoked, and a server that starts anew knows it.
#pragma once

#include "api/problem.h"
#include "base/clock.h"
#include "base/io/http.h"

#include <optional>
#include <string>
#include <string_view>

namespace muster::api {

/// "__Host-": a browser takes it over HTTPS alone, for this host alone, for the whole of it.
inline constexpr std::string_view kSessionCookie = "__Host-muster";
inline constexpr std::string_view kSessionPath = "/session";  ///< below kBasePath

/// One cookie of a Cookie header (RFC 6265, 5.4); empty when it has none of this name.
std::string_view cookieOf(std::string_view header, std::string_view name);

/// The token that a request shows: Authorization, else the session's cookie. A request over the
/// Unix socket has no cookie: its peer is known.
std::string_view shownToken(const io::ServerRequest& request);

/// Whether a request comes from a page of this very server, as a browser says it: Sec-Fetch-Site,
/// and for a browser that does not send it, Origin. One that says neither does not.
bool isFromOwnPage(const io::ServerRequest& request);

/// A request that changes something and is known by its cookie alone, or by a certificate that a
/// browser shows, must come from the page: else any page that a browser shows could give orders.
/// nullopt: it may go on.
std::optional<Problem> refusedOrder(const io::ServerRequest& request);

/// `204` with the cookie. `expires_at`: the token's end.
io::ServerResponse sessionBegun(std::string_view token, std::optional<WallTime> expires_at,
                                WallTime now);
/// `204` that takes the cookie away.
io::ServerResponse sessionEnded();

}  // namespace muster::api
