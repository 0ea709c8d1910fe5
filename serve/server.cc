#include "serve/server.h"

#include "base/io/process.h"
#include "base/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace muster::serve {

namespace {

/// The server's certificate is issued anew at every start; what nodes pin is the authority.
constexpr std::chrono::hours kServerCertificateLifetime{24 * 365};
/// Agents wait in a poll for kPollWait; a connection that says nothing for this long is dropped.
constexpr std::chrono::seconds kIdleTimeout{90};
constexpr std::size_t kPlainBodyBytes = 64u << 10;  ///< plain HTTP only serves files
constexpr std::size_t kAgentBodyBytes = 16u << 20;  ///< poll with task reports
/// An agent holds one connection, and for a moment two when all come back after a failure of the network.
constexpr std::size_t kAgentConnections = 65'536;

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

Result<std::unique_ptr<io::HttpServer>> listen(const asio::any_io_executor& executor, io::ServerOptions options,
                                               std::vector<io::Route> routes) {
  const auto where = fmt::format("{} {}:{}", options.identity ? "HTTPS" : "HTTP", options.address, options.port);
  auto server = io::startHttpServer(executor, std::move(options));
  if (!server) return tl::unexpected(std::move(server).error().within(where));
  (*server)->addRoutes(std::move(routes));
  return server;
}

}  // namespace

Result<std::unique_ptr<Server>> start(asio::any_io_executor executor, const inventory::Network& provisioning,
                                      const io::CertificateAuthority& ca, std::vector<io::Route> http_routes,
                                      std::vector<io::Route> https_routes) {
  if (const auto open = io::raiseDescriptorLimit(kDescriptors); open < kFewDescriptors)
    logWarning("serve", "only {} files and connections may be open at once: raise the hard limit of open files (LimitNOFILE, ulimit -Hn)", open);
  io::ServerOptions options;
  options.address = provisioning.controller.str();
  options.port = kHttpPort;
  options.idle_timeout = kIdleTimeout;
  options.max_body_bytes = kPlainBodyBytes;
  TRY(http, listen(executor, options, std::move(http_routes)));
  TRY(identity, ca.issueServer("muster", {options.address}, kServerCertificateLifetime));
  options.port = kHttpsPort;
  options.identity = std::move(identity);
  options.client_ca_pem = ca.certificatePem();  // asked for, not required: a node that enrols has none yet
  options.admit_expired_clients = true;                // one that was away for long may renew; every other route sees no certificate
  options.max_body_bytes = kAgentBodyBytes;
  options.max_connections = kAgentConnections;
  TRY(https, listen(executor, options, std::move(https_routes)));
  return std::make_unique<TwoListeners>(std::move(http), std::move(https));
}

}  // namespace muster::serve
