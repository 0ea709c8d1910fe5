// SPDX-License-Identifier: Apache-2.0
// A real server with a provider of OpenID Connect beside it, and curl as its browser.
#pragma once

#include "api/oidc/logins.h"
#include "tests/api/api_site.h"
#include "tests/client_pki.h"

#include <algorithm>

namespace muster::api {

/// Debian's, which has python3-jwt.
inline constexpr const char* kDebiansPython = "/usr/bin/python3";

inline std::filesystem::path oidcScripts() { return test::sourceFolder() / "tests/api/oidc"; }

inline std::string base64Url(const std::string& text) {
  auto out = io::toBase64(text);
  std::ranges::replace(out, '+', '-');
  std::ranges::replace(out, '/', '_');
  while (out.ends_with('=')) out.pop_back();
  return out;
}

/// What of a cookie is sent back.
inline std::string cookieIn(const Said& said) {
  const auto text = said.header("Set-Cookie");
  return text.substr(0, text.find(';'));
}

class LoginSite : public ApiSite {
 protected:
  void SetUp() override {
    ApiSite::SetUp();
    pki_.issue("sso", "/CN=localhost", "server", "-days 10", "DNS:localhost");
  }
  void TearDown() override {
    if (provider_) provider_->terminate(std::chrono::seconds(1));
    ApiSite::TearDown();
  }
  /// Waits for the line that it prints when it answers.
  nlohmann::json startProvider(io::Command command) {
    const auto log = site_ / fmt::format("provider{}.log", ++providers_);
    auto child = io::makeProcessRunner()->start(std::move(command), log);
    if (!child) {
      ADD_FAILURE() << child.error().str();
      return {};
    }
    provider_ = std::move(*child);
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (std::chrono::steady_clock::now() < limit && provider_->running()) {
      const auto text = io::readFile(log);
      if (!text) continue;
      std::istringstream lines(*text);
      for (std::string line; std::getline(lines, line);)
        if (line.starts_with('{') && !lines.eof()) return jsonOrNone(line, kToolJson);
    }
    ADD_FAILURE() << "no provider: " << io::readFile(log).value_or("");
    return {};
  }
  std::string url() const { return fmt::format("https://localhost:{}", server_->port()); }
  /// Until the server has seen it, which it does every second.
  void useIssuer(const std::string& issuer, const std::string& more = {}) {
    site_.write("access.conf",
                fmt::format("oidc issuer={} client-id=muster name=preferred_username page={} ca={} "
                            "{}\noidc-group approvers approver\noidc-group hpc operator "
                            "pools=batch\nperson ben oidc:benjamin\n",
                            issuer, url(), (pki_ / "ca.crt").string(), more));
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto marked = [&] {
      const auto said = ask({.target = "/api/v1/login", .over_https = true, .record = false});
      return said.json.is_object() && said.json["oidc"].is_object();
    };
    while (!marked() && std::chrono::steady_clock::now() < limit) {
    }
    ASSERT_TRUE(marked());
  }
  Said over(const std::string& target, std::vector<std::string> headers = {}) {
    return ask(
        {.target = target, .headers = std::move(headers), .over_https = true, .record = false});
  }
  Said withCookie(const std::string& cookie, const std::string& target,
                  const std::string& method = "GET") {
    return ask({.method = method,
                .target = target,
                .headers = {"Cookie: " + cookie, "Sec-Fetch-Site: same-origin",
                            "Content-Type: application/json"},
                .over_https = true,
                .record = false});
  }

  test::ClientPki pki_;
  std::unique_ptr<io::Child> provider_;
  int providers_ = 0;
};

}  // namespace muster::api
