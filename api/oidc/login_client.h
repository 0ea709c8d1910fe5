// SPDX-License-Identifier: Apache-2.0
// The command line's side of a login: it shows a code, a person enters it in a browser, and the
// token is kept in a file of this user alone, for this server alone.
#pragma once

#include "app/site/options.h"
#include "base/clock.h"
#include "base/io/http.h"

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

namespace muster::api {

struct KeptLogin {
  std::string token, principal;
  WallTime expires_at{};
};

/// $XDG_CONFIG_HOME/muster/logins.json, else below ~/.config. Mode 0600, in a folder of 0700.
class LoginFile {
 public:
  explicit LoginFile(std::filesystem::path file) : file_(std::move(file)) {}
  /// Errors: InvalidInput (no home)
  static Result<LoginFile> ofUser();

  /// By the server's origin. A file that is not there holds none. Errors: Denied (others may read
  /// it), Corrupt
  Result<std::map<std::string, KeptLogin>> read() const;
  /// Nothing: takes it away.
  Result<void> keep(const std::string& origin, const std::optional<KeptLogin>& login) const;
  const std::filesystem::path& path() const { return file_; }

 private:
  std::filesystem::path file_;
};

/// "https://ctl1:9443", as logins are kept by. Errors: InvalidInput (no --server, or another kind)
Result<std::string> loginOrigin(const app::Options& options);

struct LoginPrompt {
  std::string user_code, verification_uri;
  std::string verification_uri_complete;  ///< empty: there is none
  std::chrono::seconds expires_in{};
};

/// Waits until the code is entered, refused or over. `show`: once, as soon as there is a code.
/// Errors: InvalidInput (no server, no CA), NotFound (the server or its provider has no such way),
/// Denied, Timeout (nobody entered it), Unavailable
Result<KeptLogin> logIn(const app::Options& options, const LoginFile& file,
                        const std::function<void(const LoginPrompt&)>& show);
/// Ends the login at the server, and forgets it here in any case. Answers whether there was one.
Result<bool> logOut(const app::Options& options, const LoginFile& file);

}  // namespace muster::api
