// SPDX-License-Identifier: Apache-2.0
// What is asked of a provider of OpenID Connect: where its endpoints are (Discovery 1.0), its keys,
// tokens for a code (RFC 6749, 7636) or for a device (RFC 8628), and who it is (userinfo). All of
// it asynchronous, each answer bounded, and no redirection followed.
#pragma once

#include "api/doors.h"
#include "api/oidc/id_token.h"
#include "api/oidc/key_set.h"
#include "base/io/http.h"

#include <chrono>
#include <memory>
#include <string>

namespace muster::api {

/// Somebody whom the provider has just proved.
struct OidcLogin {
  OidcAccount account;
  WallTime expires_at{};
};

struct DeviceStart {
  std::string device_code, user_code;
  std::string verification_uri;           ///< https
  std::string verification_uri_complete;  ///< with the code in it; empty: there is none
  std::chrono::seconds expires_in{600}, interval{5};
};

struct DevicePoll {
  bool pending = false;
  bool slow_down = false;
  std::optional<OidcLogin> login;
};

class ProviderClient {
 public:
  using MakeHttp = std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)>;
  explicit ProviderClient(OidcProvider provider, MakeHttp make_http = io::makeHttpClient);

  const OidcSettings& settings() const { return provider_.settings; }

  /// Where a browser goes. `challenge`: of PKCE, S256. Errors: Unavailable, Corrupt (the provider)
  Async<std::string> authorizationUrl(std::string redirect_uri, std::string state,
                                      std::string nonce, std::string challenge);
  /// Whether answers to a browser must name the issuer (RFC 9207). After authorizationUrl.
  bool namesIssuer() const { return endpoints_ && endpoints_->names_issuer; }
  /// Errors: Denied (the code, the token, the account), Unavailable, Corrupt
  Async<OidcLogin> redeem(std::string code, std::string redirect_uri, std::string verifier,
                          std::string nonce);
  /// Errors: NotFound (it has no such endpoint), Unavailable, Corrupt
  Async<DeviceStart> startDevice();
  Async<DevicePoll> pollDevice(std::string device_code);

 private:
  using Steady = std::chrono::steady_clock;
  struct Endpoints {
    std::string authorization, token, keys;
    std::string device, userinfo;  ///< empty: none
    bool by_post = false;          ///< client_secret_post; else client_secret_basic
    bool names_issuer = false;
  };
  struct Said {
    int status = 0;
    nlohmann::json body;
  };

  Async<Endpoints> endpoints();
  Async<Endpoints> discover();
  Async<KeySet> keys(bool anew);
  Async<Said> ask(io::HttpRequest request, std::string what);
  io::HttpRequest form(const std::string& url,
                       std::vector<std::pair<std::string, std::string>> values,
                       const Endpoints& at) const;
  /// Of the answer of the token endpoint.
  Async<OidcLogin> loginOf(nlohmann::json answer, std::optional<std::string> nonce);
  Async<OidcAccount> accountOf(IdToken token, std::string access_token);

  OidcProvider provider_;
  std::unique_ptr<io::HttpClient> http_;
  std::optional<Endpoints> endpoints_;
  Steady::time_point endpoints_until_{};
  std::optional<Error> failed_;  ///< of the last try to find them
  Steady::time_point failed_until_{};
  std::optional<KeySet> keys_;
  Steady::time_point keys_until_{}, keys_anew_from_{};
};

}  // namespace muster::api
