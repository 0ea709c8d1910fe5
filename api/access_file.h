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
// that the server runs as. A row that is wrong closes what it may be about, from its place on, and
// nothing else: whom it names is nobody, and not whom a later row would make of them.
// docs/adr/0291, 0348, 0349, 0365
#pragma once

#include "api/identity.h"
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
  std::string wrong = {};  ///< where, and what; then whom it fits is refused with that, and without
                           ///< `who` it may fit anybody. Empty: it is right
  std::string where = {};  ///< "file:line:1"
};

/// All of them must be in the certificate.
struct CertificateRow {
  std::vector<std::pair<std::string, std::string>> conditions;  ///< "cn" and "anna"
  Role role = Role::Viewer;
  Scope scope;
  std::string wrong = {};  ///< as AccessRow's; it fits by the conditions that could be read
  std::string where = {};  ///< "file:line:1"
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
  /// Whether a last row without a line end is taken for one that was cut off.
  enum class LastRow { MayEndAnyhow, MustEnd };
  /// `file` is named in what is wrong.
  static AccessTable parse(std::string_view text, const std::string& file,
                           LastRow last = LastRow::MayEndAnyhow);
  /// A file that is not there has no rows. Errors: Denied (others than root and this process's user
  /// may write it), Unavailable
  static Result<AccessTable> read(const std::filesystem::path& file);

  /// Who this peer is. Users and groups are looked up by the host's means, which may take a while.
  /// Errors, of all three: NotFound (nobody that may anything), InvalidInput (a row that is wrong
  /// may be about them)
  Result<Identity> identify(const io::PeerCredentials& peer) const;
  /// Of a certificate that is believed.
  Result<Identity> identify(const io::CertificateNames& certificate) const;
  /// Of an account that the provider has proved.
  Result<Identity> identify(const OidcAccount& account) const;

  /// What is wrong with it, "file:line:1: …", in the order of the file.
  const std::vector<std::string>& problems() const { return problems_; }
  /// Why no certificate, or no login, counts; empty: those that rows name do.
  const std::string& certificatesClosed() const { return certificates_closed_; }
  const std::string& oidcClosed() const { return oidc_closed_; }

  const std::vector<AccessRow>& rows() const { return rows_; }
  const std::vector<CertificateRow>& certificates() const { return certificates_; }
  const std::vector<AccessRow>& oidcRows() const { return oidc_rows_; }
  const std::filesystem::path& clientCa() const { return client_ca_; }    ///< empty: none
  const std::filesystem::path& clientCrl() const { return client_crl_; }  ///< empty: none
  const std::optional<OidcSettings>& oidc() const { return oidc_; }

 private:
  friend class AccessParser;
  /// Whom the rows `person` name for a principal; else `otherwise`. Errors: InvalidInput
  Result<std::string> personOf(const std::string& principal, const std::string& otherwise) const;

  std::vector<AccessRow> rows_;
  std::filesystem::path client_ca_, client_crl_;
  std::vector<CertificateRow> certificates_;
  std::optional<OidcSettings> oidc_;
  std::vector<AccessRow> oidc_rows_;
  std::map<std::string, std::string> persons_;        ///< by principal
  std::map<std::string, std::string> wrong_persons_;  ///< by principal: what is wrong with the row
  std::vector<std::string> problems_;
  std::string certificates_closed_, oidc_closed_;
};

/// By this host's means, which may take a while; an id is known to nobody and counts as one.
bool isKnownUser(const std::string& name);
bool isKnownGroup(const std::string& name);

/// A file beside the access file that decides who comes in. Errors: NotFound, Denied (others than
/// root and this process's user may write it; with `is_secret`: or read it), Unavailable
Result<std::string> readTrustedFile(const std::filesystem::path& file, bool is_secret = false);

}  // namespace muster::api
