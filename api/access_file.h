// SPDX-License-Identifier: Apache-2.0
// /etc/muster/access.conf: who may do what. A file of the host and not of the inventory: whoever
// may change the inventory does not thereby become an administrator, and user ids are the host's.
//
//   # WHO                          ROLE      SCOPE
//   user anna                      operator
//   user 1003                      robot     nodes=gpu[001-064]
//   group hpc                      operator  pools=batch,debug
//
//   client-ca  /etc/muster/clients-ca.pem
//   client-crl /etc/muster/clients.crl
//   certificate cn=ci o="HPC Team" robot     pools=batch
//
//   oidc issuer=https://sso.example.org client-id=muster name=preferred_username
//   oidc-group hpc-admins          admin
//   oidc-user ben                  approver
//
//   person anna  cert:anna-laptop oidc:anna@example.org
//
// Of each way the first row that fits counts. root is admin whatever it says, and so is the user
// that the server runs as. docs/adr/0291, 0348, 0349
#pragma once

#include "api/identity.h"
#include "base/diagnostic.h"
#include "base/io/client_certificate.h"
#include "base/io/peer_credentials.h"

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace muster::api {

inline constexpr std::string_view kAccessFile = "/etc/muster/access.conf";
inline constexpr const char* kViewerGroup = "muster";  ///< its members are viewers

struct AccessRow {
  bool is_group = false;
  std::string who;  ///< a name, or digits: an id
  Role role = Role::Viewer;
  Scope scope;
};

/// All of them must be in the certificate.
struct CertificateRow {
  std::vector<std::pair<std::string, std::string>> conditions;  ///< "cn" and "anna"
  Role role = Role::Viewer;
  Scope scope;
};

/// A provider of OpenID Connect.
struct OidcSettings {
  std::string issuer;  ///< "https://sso.example.org/realms/site", as its tokens say it
  std::string client_id;
  std::string name_claim;  ///< that says who somebody is; must be one that people cannot change
  std::string group_claim = "groups";
  std::string scopes = "openid profile email";
  std::filesystem::path secret_file;  ///< empty: a public client
  std::filesystem::path ca_file;      ///< empty: the authorities of this host
  std::string page;  ///< "https://ctl1:9443", where people see the page; empty: no login there
  friend bool operator==(const OidcSettings&, const OidcSettings&) = default;
};

/// What a provider says of somebody.
struct OidcAccount {
  std::string issuer, subject;
  std::string name;              ///< of OidcSettings::name_claim
  std::set<std::string> groups;  ///< of OidcSettings::group_claim
};

class AccessTable {
 public:
  /// `file` is named in diagnostics.
  static Result<AccessTable> parse(std::string_view text, const std::string& file,
                                   Diagnostics& problems);
  /// A file that is not there has no rows. Errors: InvalidInput (a row; file:line), Denied (others
  /// than root and this process's user may write it)
  static Result<AccessTable> read(const std::filesystem::path& file);

  /// Who this peer is. Users and groups are looked up by the host's means, which may take a while.
  /// Nothing: nobody that may anything.
  std::optional<Identity> identify(const io::PeerCredentials& peer) const;
  /// Of a certificate that is believed. Nothing: no row names it, or it names nobody.
  std::optional<Identity> identify(const io::CertificateNames& certificate) const;
  /// Of an account that the provider has proved. Nothing: no row names it or one of its groups.
  std::optional<Identity> identify(const OidcAccount& account) const;

  const std::vector<AccessRow>& rows() const { return rows_; }
  const std::filesystem::path& clientCa() const { return client_ca_; }    ///< empty: none
  const std::filesystem::path& clientCrl() const { return client_crl_; }  ///< empty: none
  const std::optional<OidcSettings>& oidc() const { return oidc_; }

 private:
  friend class AccessParser;
  /// Whom the rows `person` name for a principal; else `otherwise`.
  std::string personOf(const std::string& principal, const std::string& otherwise) const;

  std::vector<AccessRow> rows_;
  std::filesystem::path client_ca_, client_crl_;
  std::vector<CertificateRow> certificates_;
  std::optional<OidcSettings> oidc_;
  std::vector<AccessRow> oidc_rows_;
  std::map<std::string, std::string> persons_;  ///< by principal
};

/// A file beside the access file that decides who comes in. Errors: NotFound, Denied (others than
/// root and this process's user may write it; with `is_secret`: or read it), Unavailable
Result<std::string> readTrustedFile(const std::filesystem::path& file, bool is_secret = false);

}  // namespace muster::api
