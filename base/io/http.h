// SPDX-License-Identifier: Apache-2.0
// HTTP messages, and the seams to send and to serve them (Boost.Beast behind both).
#pragma once

#include "base/async/task.h"
#include "base/io/crypto.h"
#include "base/io/peer_credentials.h"
#include "base/io/unix_listener.h"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace muster::io {

struct CaseLess {
  bool operator()(const std::string& a, const std::string& b) const;
};
using Headers = std::map<std::string, std::string, CaseLess>;

struct Url {
  std::string scheme;  ///< "http" or "https"
  std::string host;
  std::uint16_t port = 0;
  std::string target;  ///< path and query, starts with '/'
  static Result<Url> parse(std::string_view text);
  std::string str() const;
  std::string origin() const;  ///< scheme://host:port
};

/// Percent-decoded query parameters of a target.
std::map<std::string, std::string> queryOf(std::string_view target);
/// The percent-decoded path without the query.
std::string pathOf(std::string_view target);
std::string percentEncode(std::string_view text);

// ---- client

struct HttpRequest {
  std::string method = "GET";
  Url url;
  Headers headers;
  std::string body;
  std::shared_ptr<const std::string> attachment =
      {};  ///< sent after `body`, then `body_end`: many requests may share a large one
  std::string body_end = {};
  std::chrono::milliseconds timeout{30000};
  std::size_t max_body_bytes = 64u << 20;

  std::size_t bodyBytes() const {
    return body.size() + (attachment ? attachment->size() : 0) + body_end.size();
  }
};

struct HttpResponse {
  int status = 0;
  Headers headers;
  std::string body;
  std::string header(const std::string& name) const;  ///< empty when absent
};

/// How a client decides to trust a server.
struct TlsTrust {
  std::string ca_pem;              ///< verify the chain against these roots
  std::string pinned_fingerprint;  ///< accept exactly this certificate (SHA-256 of DER, hex); of
                                   ///< the chain's root with ca pinning, see pin_is_root
  bool pin_is_root =
      false;  ///< the pin names the root that the server presents at the end of its chain
  bool accept_first = false;  ///< first contact: accept what is shown, and from then on only that;
                              ///< the caller pins `HttpClient::peerFingerprint`
  std::optional<TlsIdentity> identity;  ///< for mutual TLS
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  /// One request over a kept-alive connection; a connection that the server had closed is opened
  /// again once. Errors: Unavailable (refused, reset), Timeout, Denied (TLS trust), Corrupt
  /// (malformed answer)
  virtual Async<HttpResponse> send(HttpRequest request) = 0;
  /// Downloads into `sink` piece by piece, a window (256 KiB) in memory. An error of the sink stops
  /// it and is the answer. Only the body of a 2xx answer goes to the sink; that of any other is in
  /// the response. `timeout` bounds the time to the answer's head and then each pause, not the
  /// whole download; `max_body_bytes` does not apply.
  virtual Async<HttpResponse> fetch(HttpRequest request,
                                    std::function<Result<void>(std::string_view)> sink) = 0;
  /// Fingerprint of the certificate seen last, hex; empty before the first TLS handshake.
  virtual std::string peerFingerprint() const = 0;
};

/// One client talks to one origin at a time; connections are reused per origin.
std::unique_ptr<HttpClient> makeHttpClient(TlsTrust trust = {});

// ---- server

struct ShownCertificate;  // base/io/client_certificate.h

/// Memory of the server's budget that a request's body holds; given back when the last copy of it
/// goes.
class BodyCharge;

struct ServerRequest {
  std::string method;
  std::string target;  ///< path and query
  Headers headers;
  std::string body;
  std::string remote_address;
  std::string client_common_name;  ///< from the verified client certificate; empty without one
  std::string expired_client_common_name;  ///< of a certificate that is right but for its age;
                                           ///< never set together with the one above
  std::string client_key_id;  ///< SHA-256 of the public key of whichever of the two it was, hex
  std::shared_ptr<BodyCharge> charge = {};   ///< of a large body
  std::optional<PeerCredentials> peer = {};  ///< of whoever connected to a Unix socket
  std::shared_ptr<const ShownCertificate> shown_certificate =
      {};  ///< with ServerOptions::takes_any_client_certificate; nothing of it is believed yet
  std::map<std::string, std::string> path_parameters =
      {};  ///< of a route with a template: "/nodes/{name}"

  std::string path() const { return pathOf(target); }
  /// For a handler that goes on for long after it has read the body: its memory is free for others.
  void releaseBody() {
    body = std::string();
    charge.reset();
  }
};

/// Bytes that stand in the place of the file's own, inside it.
struct FileOverlay {
  std::uint64_t offset = 0;
  std::string bytes;
};

/// A part of a file, sent without reading it into memory. Range requests are answered by the server
/// itself.
struct FileBody {
  std::filesystem::path path;
  std::string content_type = "application/octet-stream";
  std::shared_ptr<const FileOverlay> overlay = {};  ///< nullptr: the file as it is
};

/// A body that is made while it is sent, and has no end that anybody knows (text/event-stream).
/// `next` is asked for a piece when the one before has been taken, so that a client that reads
/// slowly makes nothing grow; nullopt ends the body. It may wait for as long as it likes, and is
/// cancelled (operation_aborted) with the server. A client that does not take a piece in
/// `piece_timeout` is dropped.
struct StreamBody {
  std::string content_type;
  std::function<Task<std::optional<std::string>>()> next;
  std::chrono::seconds piece_timeout{10};
};

struct ServerResponse {
  int status = 200;
  Headers headers;
  std::variant<std::string, FileBody, StreamBody> body;

  static ServerResponse text(int status, std::string body);
  static ServerResponse json(int status, const std::string& body);
  static ServerResponse file(FileBody body);
  static ServerResponse stream(StreamBody body);
};

using Handler = std::function<Task<ServerResponse>(ServerRequest)>;

/// What a route decides from a request's line, headers and client certificate, before any of its
/// body is read.
struct Admission {
  std::size_t max_body_bytes =
      0;  ///< a longer body is answered 413, as soon as it is declared or is longer
  std::optional<ServerResponse> refusal;  ///< answered instead of the handler; the body is not read
};
/// On the control thread, for everybody who connects: it must not read files, hash, ask the store
/// or write log lines.
using Admit = std::function<Admission(const ServerRequest& head)>;

/// A route: method ("*" any) and a path; a path that ends in "/" owns everything below it, and
/// "{name}" stands for one segment that is not empty. The path itself wins over a template, a
/// template over what is above it; among equals the longer one.
struct Route {
  std::string method;
  std::string path;
  Handler handle;
  Admit admit = {};  ///< empty: anybody, with bodies of ServerOptions::max_body_bytes
  /// Before `admit`, which only looks at what is known: may bring it up to date. It must bound its
  /// own work, because anybody may ask.
  std::function<Task<void>(ServerRequest head)> before_admit = {};
};

/// Memory, connections and time that a server spends on its clients, together and one by one
/// (docs/adr/0161).
struct ServerOptions {
  std::string address = "127.0.0.1";
  std::uint16_t port = 0;  ///< 0: any free port
  std::optional<UnixSocketOptions>
      unix_socket;                      ///< instead of address and port; clients count by uid
  std::optional<TlsIdentity> identity;  ///< HTTPS when set
  std::string client_ca_pem;            ///< asks for a client certificate from this CA
  bool require_client_certificate = false;
  bool takes_any_client_certificate =
      false;  ///< asks for one, and leaves to handlers what they believe (shown_certificate);
              ///< client_ca_pem only says which ones to show, and may be empty
  bool admit_expired_clients =
      false;  ///< the handshake goes on; handlers see expired_client_common_name
  std::size_t max_body_bytes = 256u << 20;  ///< of routes that do not decide it themselves
  std::size_t max_bodies_bytes =
      1u << 30;  ///< of all requests that are being read or worked on; more are answered 503
  std::size_t max_connections = 4096;  ///< lower where the process may not open as many descriptors
  std::size_t max_connections_per_address =
      static_cast<std::size_t>(-1);  ///< no cap of its own, unless it is set
  std::chrono::seconds idle_timeout{
      90};  ///< between requests, and of an answer of which nothing is taken
  std::chrono::milliseconds handshake_timeout{20000};  ///< the whole TLS handshake
  std::chrono::milliseconds head_timeout{
      10000};  ///< request line and headers, from their first byte
  std::chrono::milliseconds body_timeout{
      10000};                             ///< a body, beside the time that min_body_rate gives it
  std::size_t min_body_rate = 64u << 10;  ///< bytes per second
  /// The server's own refusals (a malformed head, a long body), in the form that its clients read;
  /// empty: plain text.
  std::function<ServerResponse(int status, std::string_view reason)> refusal = {};
  std::size_t min_answer_rate = 4u
                                << 10;  ///< bytes per second; of an answer, beside one idle_timeout
};

/// What a server holds now, and what it gave up since it started.
struct ServerLoad {
  std::size_t connections = 0;
  std::size_t body_bytes = 0;             ///< charged to ServerOptions::max_bodies_bytes
  std::uint64_t dropped_connections = 0;  ///< idle ones, for others
  std::uint64_t refused_connections = 0;
};

class HttpServer {
 public:
  virtual ~HttpServer() = default;
  virtual std::uint16_t port() const = 0;
  virtual void addRoutes(std::vector<Route> routes) = 0;
  virtual ServerLoad load() const = 0;
  /// Stops accepting and closes connections; further calls do nothing.
  virtual void stop() = 0;
};

/// Binds and starts to serve on the executor. Errors: Conflict (address in use), InvalidInput
/// (identity)
Result<std::unique_ptr<HttpServer>> startHttpServer(asio::any_io_executor executor,
                                                    ServerOptions options);

}  // namespace muster::io
