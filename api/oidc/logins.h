// SPDX-License-Identifier: Apache-2.0
// Logging in by a provider of OpenID Connect: a browser through the provider and back (code, PKCE),
// a command line with a code that a person enters elsewhere (device flow). Both end in a token of
// muster's own (Tokens::logIn), which ends when the provider's does. docs/adr/0349
//
// Whoever connects may begin a login: what is under way is bounded, together and of one address,
// and so is what is asked of the provider at a time. All on the network's thread.
#pragma once

#include "api/doors.h"
#include "api/oidc/provider_client.h"
#include "api/tokens.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::api {

inline constexpr std::string_view kLoginCookie = "__Host-muster-login";
inline constexpr std::size_t kMaxPendingLogins = 1'024;
inline constexpr std::size_t kMaxPendingOfAddress = 64;
inline constexpr std::size_t kMaxProviderRequests = 8;  ///< at a time

/// What a login needs of the server.
struct LoginHooks {
  std::function<std::shared_ptr<Doors>()> doors;
  /// Keeps a login in the store.
  std::function<Async<CreatedToken>(LoginRequest)> log_in;
  ProviderClient::MakeHttp make_http = io::makeHttpClient;
};

class Logins {
 public:
  explicit Logins(LoginHooks hooks) : hooks_(std::move(hooks)) {}

  /// GET /login, GET /login/callback, GET and POST below /api/v1/login. For everybody.
  std::vector<io::Route> routes();

 private:
  using Steady = std::chrono::steady_clock;
  struct Pending {
    std::shared_ptr<ProviderClient> provider;
    std::string address;
    Steady::time_point until;
    // of a browser
    std::string state, nonce, verifier, to;
    // of a device
    std::string device_code;
    std::chrono::seconds interval{};
    Steady::time_point ask_from;
    bool is_asked = false;
  };
  using Table = std::unordered_map<std::string, Pending>;

  Task<io::ServerResponse> ways(io::ServerRequest request);
  Task<io::ServerResponse> begin(io::ServerRequest request);
  Task<io::ServerResponse> comeBack(io::ServerRequest request);
  Task<io::ServerResponse> beginDevice(io::ServerRequest request);
  Task<io::ServerResponse> pollDevice(io::ServerRequest request);

  /// The client of the provider that the access file names now. Errors: 404, 503
  std::expected<std::shared_ptr<ProviderClient>, Problem> provider();
  /// Room for one more of this address, at the cost of its oldest. Errors: 429
  std::expected<void, Problem> makeRoom(Table& table, const std::string& address);
  Task<std::expected<CreatedToken, Problem>> admit(OidcLogin login, io::ServerRequest request);

  LoginHooks hooks_;
  std::shared_ptr<ProviderClient> provider_;
  std::shared_ptr<Doors> provider_of_;
  Table browsers_;  ///< by the cookie
  Table devices_;   ///< by what the command line was given
  std::size_t asking_ = 0;
};

/// What the page may be opened at after a login: "" or "#/…", a part of its address that names no
/// host. Errors: InvalidInput
Result<std::string> checkedTarget(std::string_view to);

}  // namespace muster::api
