// SPDX-License-Identifier: Apache-2.0
#include "api/site_choice.h"

#include "api/oidc/login_client.h"
#include "api/remote_site.h"
#include "api/server.h"
#include "app/site/embedded_site.h"
#include "base/io/files.h"
#include "base/io/unix_client.h"

#include <fmt/format.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace muster::api {
namespace {

using Site = std::unique_ptr<app::SiteClient>;

constexpr std::size_t kMaxSmallFile = 1u << 20;
constexpr const char* kSocketVariable = "MUSTER_API_SOCKET";

std::string withoutLineEnd(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.pop_back();
  return text;
}

/// Of `muster login`, where nothing else says who asks. Empty: there is none.
Result<std::string> keptToken(const app::Options& options) {
  const auto file = LoginFile::ofUser();
  const auto origin = loginOrigin(options);
  if (!file || !origin) return std::string();
  TRY(logins, file->read());
  const auto found = logins.find(*origin);
  if (found == logins.end()) return std::string();
  if (found->second.expires_at <= SystemClock().now())
    return fail(
        ErrorCode::Denied,
        fmt::format("the login of {} to {} ended at {}; run muster login again, or muster "
                    "logout",
                    found->second.principal, *origin, muster::toString(found->second.expires_at)));
  return found->second.token;
}

Result<std::string> tokenOf(const app::Options& options) {
  const bool has_certificate = !options.client_cert.empty() || !options.client_key.empty();
  if (options.token_file.empty() && options.token.empty() && !has_certificate)
    return keptToken(options);
  if (options.token_file.empty()) return options.token;
  TRY(text, io::readFile(options.token_file, kMaxSmallFile));
  auto token = withoutLineEnd(std::move(text));
  if (token.empty())
    return fail(ErrorCode::InvalidInput, options.token_file.string() + " holds no token");
  return token;
}

/// The certificate by which the server is to know this client; nothing: none is said.
Result<std::optional<io::TlsIdentity>> certificateOf(const app::Options& options) {
  std::optional<io::TlsIdentity> out;
  if (options.client_cert.empty() && options.client_key.empty()) return out;
  if (options.client_cert.empty() || options.client_key.empty())
    return fail(ErrorCode::InvalidInput,
                "a certificate and its key belong together: give --client-cert FILE "
                "(MUSTER_CLIENT_CERT) and --client-key FILE (MUSTER_CLIENT_KEY)");
  TRY(certificate, io::readFile(options.client_cert, kMaxSmallFile));
  TRY(key, io::readFile(options.client_key, kMaxSmallFile));
  out = io::TlsIdentity{Secret(std::move(key)), std::move(certificate)};
  return out;
}

/// Whose program on a socket of this state folder is believed: root's, this user's, and that of
/// whom the folder belongs to.
std::vector<uid_t> ownersOf(const app::Options& options) {
  std::vector<uid_t> out{0, ::geteuid()};
  struct stat what{};
  if (::stat(options.state.c_str(), &what) == 0) out.push_back(what.st_uid);
  return out;
}

Error withAdvice(Error error) {
  if (error.code() != ErrorCode::Denied || error.has(io::DialFailure::NotBelieved)) return error;
  return std::move(error).within(
      "a server serves this site, and this user may not ask it (root adds users to the group "
      "muster, whose members reach its socket, and gives them more than looking by the server's "
      "access file; --direct does without the server)");
}

Result<Site> named(const app::Options& options) {
  TRY_OK(checkServerName(options.server));
  RemoteSiteOptions remote;
  TRY(token, tokenOf(options));
  remote.token = std::move(token);
  std::string_view at = options.server;
  if (at.starts_with("unix:")) at.remove_prefix(5);
  if (at.starts_with('/')) {
    remote.socket = std::filesystem::path(at);
  } else if (at.starts_with("https://")) {
    if (options.server_ca.empty())
      return fail(ErrorCode::InvalidInput,
                  "name the certificate of the site's authority: --server-ca FILE "
                  "(MUSTER_SERVER_CA); it is ca/ca.crt in the server's state folder");
    TRY(ca, io::readFile(options.server_ca, kMaxSmallFile));
    if (!io::describeCertificate(ca))
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("{} holds no certificate (PEM); --server-ca is the certificate of the "
                      "site's authority, ca/ca.crt in the server's state folder",
                      options.server_ca.string()));
    TRY(identity, certificateOf(options));
    remote.identity = std::move(identity);
    remote.ca_pem = std::move(ca);
    remote.url = std::string(at);
    while (remote.url.ends_with('/')) remote.url.pop_back();
  }
  TRY(site, RemoteSite::connect(std::move(remote)));
  return Site(std::move(site));
}

/// Whether the server works with the file that this command would read.
bool servesInventory(const ServerFacts& server, const app::Options& options) {
  std::error_code error;
  if (server.inventory.empty() || !std::filesystem::exists(options.inventory, error)) return true;
  const auto meant = std::filesystem::weakly_canonical(options.inventory, error);
  return error || meant == server.inventory;
}

}  // namespace

Result<void> checkServerName(const std::string& server) {
  std::string_view at = server;
  if (at.starts_with("unix:")) at.remove_prefix(5);
  std::error_code unknown;
  if (at.starts_with('/')) {
    if (!std::filesystem::is_directory(at, unknown)) return {};
    return fail(ErrorCode::InvalidInput,
                fmt::format("{} is a folder; name the socket in it: {}", at,
                            (std::filesystem::path(at) / "api.sock").string()));
  }
  if (at.starts_with("https://")) {
    TRY_OK(io::Url::parse(at));
    return {};
  }
  if (at.starts_with("http://"))
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" would send what is secret in plain text; write https://{}",
                            server, at.substr(std::string_view("http://").size())));
  const bool is_path = at.find(':') == std::string_view::npos &&
                       (at.size() != server.size() || at.find('/') != std::string_view::npos ||
                        at.ends_with(".sock"));
  if (is_path)
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is a relative path, which means another socket in each folder; "
                    "write it from the root on: {}",
                    server, std::filesystem::absolute(at, unknown).lexically_normal().string()));
  return fail(ErrorCode::InvalidInput,
              fmt::format("\"{}\" is no server; write https://HOST:PORT, or the path of its Unix "
                          "socket",
                          server));
}

std::vector<std::filesystem::path> usualSockets(const app::Options& options) {
  if (const char* said = std::getenv(kSocketVariable); said && *said) return {said};
  std::vector<std::filesystem::path> out{defaultSocket(options)};
  if (options.state == kUsualState) {
    out.insert(out.begin(), kUsualSocket);
  } else {
    out.push_back(options.runFolder("api") / "api.sock");
    out.push_back(options.state / "api.sock");
  }
  std::vector<std::filesystem::path> once;
  for (auto& path : out)
    if (std::ranges::find(once, path) == once.end()) once.push_back(std::move(path));
  return once;
}

Result<Site> chooseSite(const app::Options& options,
                        const std::function<void(const std::string&)>& notice) {
  if (options.direct && options.server_given)
    return fail(ErrorCode::InvalidInput,
                "--direct asks no server: leave out --server, or --direct");
  Site embedded = std::make_unique<app::EmbeddedSite>(options);
  if (options.direct) return embedded;
  if (!options.server.empty()) return named(options);
  for (const auto& socket : usualSockets(options)) {
    std::error_code error;  // in a folder that is shut to this user there may be anything
    if (!std::filesystem::exists(std::filesystem::symlink_status(socket, error))) continue;
    RemoteSiteOptions remote;
    remote.socket = socket;
    remote.owners = ownersOf(options);
    auto site = RemoteSite::connect(std::move(remote));
    if (!site && site.error().has(io::DialFailure::NobodyListens)) continue;
    if (!site) return fail(withAdvice(std::move(site).error()));
    if (servesInventory((*site)->server(), options)) return Site(std::move(*site));
    notice(fmt::format(
        "muster: the server at {} serves {}, and this command means {}: it is answered without "
        "the server",
        socket.string(), (*site)->server().inventory, options.inventory.string()));
    break;
  }
  return embedded;
}

}  // namespace muster::api
