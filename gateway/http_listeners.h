// SPDX-License-Identifier: Apache-2.0
// The one HTTP(S) server: mounts the routes that folders offer. Plain HTTP for boot files and
// images (verified by signature and digest), HTTPS with mutual TLS for agents and drivers.
#pragma once

#include "base/io/crypto.h"
#include "base/io/http.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "signer/authority.h"

#include <memory>
#include <vector>

namespace muster::gateway {

inline constexpr std::uint16_t kHttpPort = 8080;
inline constexpr std::uint16_t kHttpsPort = 8443;

/// Of one address, behind which there may be many nodes: a router may translate their addresses.
/// Whoever holds more loses the connections that wait longest.
inline constexpr std::size_t kPlainConnectionsPerAddress =
    512;  ///< connections: a hundred nodes that boot, or write their disks by four lanes each
inline constexpr std::size_t kAgentConnectionsPerAddress =
    4'096;  ///< connections: two thousand agents, twice for a moment

/// How many clients the two listeners take when the process may open so many descriptors. One half
/// is for BMCs, files and the store.
struct Connections {
  std::size_t plain = 0, tls = 0;
};
Connections connectionsWithin(std::size_t descriptors);

class Server {
 public:
  virtual ~Server() = default;
  virtual void stop() = 0;
};
Result<std::unique_ptr<Server>> start(asio::any_io_executor executor,
                                      const inventory::Network& provisioning,
                                      const signer::Authority& ca,
                                      std::vector<io::Route> http_routes,
                                      std::vector<io::Route> https_routes);

}  // namespace muster::gateway
