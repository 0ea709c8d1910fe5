// SPDX-License-Identifier: Apache-2.0
#include "gateway/http_listeners.h"

#include "base/io/listen_problem.h"
#include "base/io/process.h"
#include "base/log.h"
#include "inventory/model/networks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::gateway {

namespace {

/// The server's certificate is issued anew at every start; what nodes pin is the authority.
constexpr std::chrono::hours kServerCertificateLifetime{24 * 365};
/// Agents wait in a poll for kPollWait; a connection that says nothing for this long is dropped.
constexpr std::chrono::seconds kIdleTimeout{90};
/// Of routes that do not say what they take: none needs a body (docs/adr/0161).
constexpr std::size_t kBodyBytes = 4u << 10;
constexpr std::size_t kPlainBodiesBytes = 16u << 20;  ///< the bits of nodes that share an image
constexpr std::size_t kAgentBodiesBytes = 512u
                                          << 20;  ///< polls with task reports; ten thousand agents
                                                  ///< that say everything anew send 2 KiB each
/// An agent holds one connection, and for a moment two when all come back after a failure of the
/// network.
constexpr std::size_t kAgentConnections = 65'536;
constexpr std::size_t kPlainConnections = 4'096;

constexpr std::size_t kFewDescriptors = 8'192;
constexpr std::size_t kDescriptors = 2 * kAgentConnections;  ///< with BMCs, files and the store

class TwoListeners final : public Server {
 public:
  TwoListeners(std::unique_ptr<io::HttpServer> http, std::unique_ptr<io::HttpServer> https)
      : http_(std::move(http)), https_(std::move(https)) {}
  void stop() override {
    http_->stop();
    https_->stop();
  }

 private:
  std::unique_ptr<io::HttpServer> http_, https_;
};

Result<std::unique_ptr<io::HttpServer>> listen(const asio::any_io_executor& executor,
                                               const inventory::Network& network,
                                               io::ServerOptions options,
                                               std::vector<io::Route> routes) {
  const auto where =
      fmt::format("{} {}:{}", options.identity ? "HTTPS" : "HTTP", options.address, options.port);
  auto server = io::startHttpServer(executor, std::move(options));
  if (!server && server.error().has(io::ListenProblem::AddressNotHere))
    return fail(
        server.error().code(),
        fmt::format(
            "{0}: no interface of this host has {1}, the controller's address on network "
            "{2} (networks.{2}.controller or .controllers; without both, the first address "
            "of its cidr). Give it to the host: `ip address add {1}/{3} dev INTERFACE` (see "
            "`ip -br address`), or correct the key",
            where, network.controller.str(), network.name, network.cidr.prefix_bits));
  if (!server) return std::unexpected(std::move(server).error().within(where));
  (*server)->addRoutes(std::move(routes));
  return server;
}

}  // namespace

Connections connectionsWithin(std::size_t descriptors) {
  const auto share = descriptors / 8;
  return {std::clamp<std::size_t>(share, 1, kPlainConnections),
          std::clamp<std::size_t>(3 * share, 1, kAgentConnections)};
}

Result<std::unique_ptr<Server>> start(asio::any_io_executor executor,
                                      const inventory::Network& provisioning,
                                      const signer::Authority& ca,
                                      std::vector<io::Route> http_routes,
                                      std::vector<io::Route> https_routes) {
  const auto open = io::raiseDescriptorLimit(kDescriptors);
  const auto connections = connectionsWithin(open);
  if (open < kFewDescriptors)
    logWarning("serve",
               "only {} files and connections may be open at once: raise the hard limit of open "
               "files (LimitNOFILE, ulimit -Hn)",
               open);
  io::ServerOptions options;
  options.address = provisioning.controller.str();
  options.port = kHttpPort;
  options.idle_timeout = kIdleTimeout;
  options.max_body_bytes = kBodyBytes;
  options.max_bodies_bytes = kPlainBodiesBytes;
  options.max_connections = connections.plain;
  options.max_connections_per_address = kPlainConnectionsPerAddress;
  TRY(http, listen(executor, provisioning, options, std::move(http_routes)));
  TRY(identity, ca.issueServer({options.address}, kServerCertificateLifetime));
  options.port = kHttpsPort;
  options.identity = std::move(identity);
  options.client_ca_pem =
      ca.certificatePem();  // asked for, not required: a node that enrolls has none yet
  options.admit_expired_clients =
      true;  // one that was away for long may renew; every other route sees no certificate
  options.max_bodies_bytes = kAgentBodiesBytes;
  options.max_connections = connections.tls;
  options.max_connections_per_address = kAgentConnectionsPerAddress;
  TRY(https, listen(executor, provisioning, options, std::move(https_routes)));
  return std::make_unique<TwoListeners>(std::move(http), std::move(https));
}

}  // namespace muster::gateway
