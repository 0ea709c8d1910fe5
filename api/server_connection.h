// SPDX-License-Identifier: Apache-2.0
// ServerConnection: questions and orders to a server of the API, by its Unix socket or by HTTPS
// with a token: what it has refused, an answer that is none, and one that is lost, as errors that
// say what to do.
#pragma once

#include "base/io/http.h"

#include <nlohmann/json_fwd.hpp>

#include <boost/asio/io_context.hpp>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::api {

struct RemoteSiteOptions {
  std::filesystem::path socket;  ///< empty: `url`
  std::vector<uid_t> owners;     ///< whose server on the socket is believed; empty: anybody's
  std::string url;               ///< "https://ctl1:9443"
  std::string ca_pem;            ///< of the site: ca/ca.crt in its state folder
  std::string token;             ///< empty: known by the socket, or the certificate
  std::optional<io::TlsIdentity> identity = {};  ///< a client's certificate
  std::unique_ptr<io::HttpClient> client = {};   ///< empty: one of its own
};

/// Who answers: GET /server.
struct ServerFacts {
  std::string version;  ///< empty: of a muster that is older than the question
  std::string host, state, inventory;
};

class ServerConnection {
 public:
  using Query = std::vector<std::pair<std::string, std::string>>;  ///< empty values are left out

  /// Asks who answers. Errors: Unavailable (nobody listens there: io::DialFailure; no answer),
  /// Denied (the socket's mode, no identity, a certificate or program that is not trusted), Corrupt
  /// (no muster answers)
  static Result<std::unique_ptr<ServerConnection>> open(RemoteSiteOptions options);
  const ServerFacts& facts() const { return facts_; }
  /// "the server at /run/muster/api.sock"
  std::string where() const;

  /// Errors: those of who listens there, what the server has refused
  Result<io::HttpResponse> send(io::HttpRequest request, const std::string& resource);
  /// The same, of an answer in JSON; null where it has no body.
  Result<nlohmann::json> ask(io::HttpRequest request, const std::string& resource);
  Result<nlohmann::json> get(const std::string& resource, const Query& query = {},
                             std::chrono::milliseconds timeout = std::chrono::seconds(60));
  /// The same, of an answer that is no JSON.
  Result<std::string> text(const std::string& resource, const Query& query,
                           std::chrono::milliseconds timeout);
  /// An order.
  Result<nlohmann::json> post(const std::string& resource, const nlohmann::json& body,
                              const std::string& idempotency_key = {});
  /// All pages of a list.
  Result<std::vector<nlohmann::json>> list(const std::string& resource, Query query);

 private:
  explicit ServerConnection(RemoteSiteOptions options);

  RemoteSiteOptions options_;
  ServerFacts facts_;
  bool is_older_ = false;  ///< than GET /server
  boost::asio::io_context io_;
  std::unique_ptr<io::HttpClient> client_;
};

}  // namespace muster::api
