// SPDX-License-Identifier: Apache-2.0
// Who comes in from elsewhere without a token of muster's: by a certificate, or through a provider
// of OpenID Connect. As the access file and the files that it names were at one moment; made anew
// when one of them changes. docs/adr/0348, 0349
#pragma once

#include "api/access_file.h"
#include "api/problem.h"
#include "base/io/client_certificate.h"

#include <chrono>
#include <expected>
#include <filesystem>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::api {

/// A provider, with the files that its row names.
struct OidcProvider {
  OidcSettings settings;
  std::string secret;  ///< empty: a public client
  std::string ca_pem;
};

/// Made on the reader's thread, used on the network's.
class Doors {
 public:
  /// Reads the files. What cannot be read shuts the door that needs it, and no other.
  /// `site_ca`: the site's own authority, whose certificates nodes have: it vouches for no person
  Doors(std::filesystem::path access_file, const std::filesystem::path& site_ca);

  /// Also where the access file cannot be read, and nobody knows.
  bool asksForCertificates() const { return asks_; }
  /// Of the authorities; empty: none that can be read.
  const std::string& caPem() const { return ca_pem_; }
  /// Errors: 401 (what is wrong with it; no row names it), 503 (nobody can say; a row that may be
  /// about it is wrong)
  std::expected<Identity, Problem> evaluate(const io::ShownCertificate& shown, WallTime now);

  /// Nothing: no provider, or oidcTrouble.
  const std::optional<OidcProvider>& oidc() const { return oidc_; }
  const std::string& oidcTrouble() const { return oidc_trouble_; }
  /// Errors: 403 (no row names the account or one of its groups), 503 (a row that may be about it
  /// is wrong)
  std::expected<Identity, Problem> admit(const OidcAccount& account) const;

  /// What an administrator must know, a line each; empty: all is well.
  const std::vector<std::string>& problems() const { return problems_; }
  /// That were read or looked for, and what they were just before.
  const std::vector<std::filesystem::path>& files() const { return files_; }
  const std::string& mark() const { return mark_; }

 private:
  using Steady = std::chrono::steady_clock;
  struct Evaluated {
    std::expected<Identity, Problem> answer;
    Steady::time_point until;
  };
  void note(const std::filesystem::path& file);
  Result<void> readClients(const std::filesystem::path& site_ca);
  Result<void> readProvider();
  std::expected<Identity, Problem> evaluateAnew(const io::ShownCertificate& shown,
                                                WallTime now) const;

  std::filesystem::path access_file_;
  std::vector<std::filesystem::path> files_;
  std::string mark_;
  std::optional<AccessTable> table_;
  bool asks_ = false;
  std::string ca_pem_;
  std::optional<io::ClientTrust> clients_;
  std::string clients_trouble_;
  std::optional<OidcProvider> oidc_;
  std::string oidc_trouble_;
  std::vector<std::string> problems_;
  std::unordered_map<std::string, Evaluated> evaluated_;  ///< by digest
};

/// Of files: another text when one of them is another, or has changed.
std::string marksOf(const std::vector<std::filesystem::path>& files);

}  // namespace muster::api
