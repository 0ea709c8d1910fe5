// SPDX-License-Identifier: Apache-2.0
// A server's TLS settings, made before it starts. OpenSSL 3 takes as long to read a key and make
// settings as for a handshake: whoever starts the same server again and again keeps them.
#pragma once

#include "base/io/http.h"

#include <boost/asio/ssl/context.hpp>

namespace muster::io {

/// Of options.identity, which must be there, and the options about clients. Errors: InvalidInput
/// (key or certificate not usable)
Result<std::shared_ptr<asio::ssl::context>> makeServerTls(const ServerOptions& options);
/// Sessions of before are not taken up any more, as after a restart.
void forgetSessions(asio::ssl::context& context);
/// As startHttpServer without `tls`; options.identity is not read.
Result<std::unique_ptr<HttpServer>> startHttpServer(asio::any_io_executor executor,
                                                    ServerOptions options,
                                                    std::shared_ptr<asio::ssl::context> tls);

}  // namespace muster::io
