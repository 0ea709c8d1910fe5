// SPDX-License-Identifier: Apache-2.0
#include "api/access_file.h"

#include "base/io/crypto.h"
#include "base/io/files.h"
#include "base/io/http.h"

#include <fmt/format.h>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <sstream>
#include <utility>

namespace muster::api {
namespace {

constexpr std::size_t kMaxFileBytes = 1u << 20;
constexpr std::size_t kMaxTrustedBytes = 16u << 20;  ///< a list of an authority may be long
constexpr std::string_view kCertificatePrefix = "cert:", kOidcPrefix = "oidc:";
constexpr std::size_t kLookupBytes = 256u << 10;

std::optional<std::uint32_t> numberOf(std::string_view who) {
  std::uint32_t id = 0;
  const auto [end, error] = std::from_chars(who.data(), who.data() + who.size(), id);
  return error == std::errc() && end == who.data() + who.size() ? std::optional(id) : std::nullopt;
}

std::string userNameOf(uid_t uid) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->pw_name;
  return fmt::format("uid {}", uid);
}

std::optional<gid_t> groupIdOf(const std::string& name) {
  if (auto number = numberOf(name)) return number;
  group entry{};
  group* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found)
    return found->gr_gid;
  return std::nullopt;
}

bool isMember(const io::PeerCredentials& peer, const std::string& name) {
  const auto group = groupIdOf(name);
  return group &&
         (peer.gid == *group || std::ranges::find(peer.groups, *group) != peer.groups.end());
}

/// Words of a row. A part between double quotes may hold spaces and '#'.
Result<std::vector<std::string>> wordsOf(const std::string& line) {
  std::vector<std::string> out;
  std::string word;
  bool in_word = false, quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
      in_word = true;
    } else if (!quoted && c == '#') {
      break;
    } else if (!quoted && std::isspace(static_cast<unsigned char>(c))) {
      if (std::exchange(in_word, false)) out.push_back(std::exchange(word, {}));
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quoted) return fail(ErrorCode::InvalidInput, "a double quote is opened and not closed");
  if (in_word) out.push_back(std::move(word));
  return out;
}

bool isKeyAndValue(const std::string& word) { return word.find('=') != std::string::npos; }

std::pair<std::string, std::string> splitAtEquals(const std::string& word) {
  const auto equals = word.find('=');
  return {word.substr(0, equals), word.substr(equals + 1)};
}

Result<Role> roleOf(const std::string& word) {
  if (const auto role = parseRole(word)) return *role;
  return fail(ErrorCode::InvalidInput,
              fmt::format("\"{}\" is no role; there are: {}", word, allRoles()));
}

Result<std::filesystem::path> absoluteFile(const std::string& text) {
  std::filesystem::path path(text);
  if (!path.is_absolute())
    return fail(ErrorCode::InvalidInput,
                fmt::format("write the file from the root on (/…), not \"{}\"", text));
  return path;
}

constexpr std::array kConditions{"cn", "o", "ou", "email", "dns", "uri"};
constexpr std::size_t kMaxPersonBytes = 64;
constexpr std::string_view kOpenIdScope = "openid";

/// What may stand for a person in logs and rows: nothing that looks like another way's principal.
bool isPersonName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPersonBytes &&
         std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) || c == '.' || c == '_' || c == '-' || c == '@' || c == '+';
         });
}

/// Of a common name, which may be "Anna Smith", in any language.
bool isCertificateName(std::string_view text) {
  return !text.empty() && text.size() <= kMaxPersonBytes &&
         std::ranges::all_of(text, [](unsigned char c) {
           return std::isalnum(c) || c >= 0x80 ||
                  std::string_view("._-@+/ ").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

bool fits(const CertificateRow& row, const io::CertificateNames& names) {
  return std::ranges::all_of(row.conditions, [&names](const auto& condition) {
    const auto& [key, value] = condition;
    if (key == "cn") return names.common_name == value;
    const auto& found = key == "o"       ? names.organizations
                        : key == "ou"    ? names.units
                        : key == "email" ? names.emails
                        : key == "dns"   ? names.dns
                                         : names.uris;
    return std::ranges::find(found, value) != found.end();
  });
}

/// Only root and this process's user may change it. Errors: Denied
Result<void> checkTrusted(const std::filesystem::path& file, const struct stat& found,
                          bool is_secret) {
  const bool is_ours = found.st_uid == 0 || found.st_uid == ::geteuid();
  if (is_ours && (found.st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
      (!is_secret || (found.st_mode & S_IROTH) == 0))
    return {};
  return fail(ErrorCode::Denied,
              fmt::format("{} {}; run: chown root {} && chmod {} {}", file.string(),
                          is_secret ? "is a secret, and others than root may read or change it"
                                    : "says who may do what, and others than root may change it",
                          file.string(), is_secret ? "640" : "644", file.string()));
}

}  // namespace

/// Reads rows into a table. A row that is wrong is put where it stands, closed.
class AccessParser {
 public:
  AccessParser(AccessTable& out, std::string file) : out_(out), file_(std::move(file)) {}
  void cut(int number, const std::string& text);
  void line(int number, const std::string& text);
  /// What is missing when all rows are read.
  void finish(int last_line);

 private:
  using Words = std::vector<std::string>;
  void row(const Words& words);
  void say(const std::string& what);
  std::string where() const { return fmt::format("{}:{}:1", file_, line_); }
  void closeCertificates();
  void closeOidc();
  void closeFromHere();
  void user(const Words& words);
  void file(const Words& words, std::filesystem::path& into);
  void certificate(const Words& words);
  Result<void> readCertificate(const Words& words, CertificateRow& row) const;
  void oidc(const Words& words);
  Result<void> readOidc(const Words& words, OidcSettings& settings);
  Result<void> oidcValue(OidcSettings& into, const std::string& key, const std::string& value);
  void person(const Words& words);
  Result<void> readPerson(const Words& words);

  AccessTable& out_;
  const std::string file_;
  int line_ = 0;
  std::string wrong_;  ///< of the row that is read: where, and what
  bool has_certificates_ = false, has_logins_ = false;  ///< rows of these kinds
};

namespace {

/// "anna operator pools=batch", behind the kind of a row. What could be read stays in `row`.
Result<void> readUser(const std::vector<std::string>& words, AccessRow& row) {
  if (words.size() > 1) row.who = words[1];
  if (words.size() < 3)
    return fail(
        ErrorCode::InvalidInput,
        "a row is: user|group|oidc-user|oidc-group NAME ROLE [pools=…] [racks=…] [nodes=…]");
  TRY(role, roleOf(words[2]));
  row.role = role;
  TRY(scope, parseScope({words.begin() + 3, words.end()}));
  row.scope = std::move(scope);
  return {};
}

}  // namespace

void AccessParser::say(const std::string& what) {
  wrong_ = fmt::format("{}: {}", where(), what);
  out_.problems_.push_back(wrong_);
}

void AccessParser::closeCertificates() {
  if (out_.certificates_closed_.empty()) out_.certificates_closed_ = wrong_;
}

void AccessParser::closeOidc() {
  if (out_.oidc_closed_.empty()) out_.oidc_closed_ = wrong_;
}

/// Of a row of which nobody knows whom it is about: it may be anybody whom no row above has named.
void AccessParser::closeFromHere() {
  const AccessRow anybody{.wrong = wrong_};
  out_.rows_.push_back(anybody);
  out_.oidc_rows_.push_back(anybody);
  out_.certificates_.push_back({.wrong = wrong_});
}

void AccessParser::line(int number, const std::string& text) {
  line_ = number;
  wrong_.clear();
  const auto words = wordsOf(text);
  if (!words) {
    say(words.error().text());
    closeFromHere();
  } else if (!words->empty()) {
    row(*words);
  }
}

/// Of a row that is half there nobody knows what it narrows.
void AccessParser::cut(int number, const std::string& text) {
  line_ = number;
  wrong_.clear();
  if (const auto words = wordsOf(text); words && words->empty()) return;
  say("the file ends within this row, as one that is still written, or for which the disk was "
      "full; end it with a line end");
  closeFromHere();
}

void AccessParser::row(const Words& words) {
  const auto& kind = words[0];
  if (kind == "client-ca") return file(words, out_.client_ca_);
  if (kind == "client-crl") return file(words, out_.client_crl_);
  if (kind == "certificate") return certificate(words);
  if (kind == "oidc") return oidc(words);
  if (kind == "person") return person(words);
  if (kind == "user" || kind == "group" || kind == "oidc-user" || kind == "oidc-group")
    return user(words);
  say("a row is: user|group|oidc-user|oidc-group NAME ROLE [pools=…] [racks=…] [nodes=…]; or it "
      "begins with certificate, client-ca, client-crl, oidc or person");
  closeFromHere();
}

void AccessParser::user(const Words& words) {
  AccessRow row;
  row.where = where();
  row.is_group = words[0].ends_with("group");
  if (const auto read = readUser(words, row); !read) {
    say(read.error().text());
    row.wrong = wrong_;
    // "user operator anna": whom it is about is not where it should be.
    if (!isPersonName(row.who) || parseRole(row.who)) row.who.clear();
  }
  const bool is_login = words[0].starts_with("oidc-");
  has_logins_ = has_logins_ || is_login;
  (is_login ? out_.oidc_rows_ : out_.rows_).push_back(std::move(row));
}

void AccessParser::file(const Words& words, std::filesystem::path& into) {
  if (words.size() != 2 || !into.empty()) {
    say(fmt::format("a row is: {} FILE, and there is one of them", words[0]));
    return closeCertificates();
  }
  if (auto path = absoluteFile(words[1])) {
    into = *std::move(path);
  } else {
    say(path.error().text());
    closeCertificates();
  }
}

void AccessParser::certificate(const Words& words) {
  has_certificates_ = true;
  CertificateRow row;
  row.where = where();
  if (const auto read = readCertificate(words, row); !read) {
    say(read.error().text());
    row.wrong = wrong_;
  }
  out_.certificates_.push_back(std::move(row));
}

/// Without a condition that cannot be read a row that is wrong fits more, which is then refused.
Result<void> AccessParser::readCertificate(const Words& words, CertificateRow& row) const {
  std::size_t at = 1;
  for (; at < words.size() && isKeyAndValue(words[at]); ++at) {
    auto condition = splitAtEquals(words[at]);
    if (std::ranges::find(kConditions, condition.first) == kConditions.end() ||
        condition.second.empty())
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" says nothing about a certificate; there are: cn=, o=, ou=, "
                              "email=, dns=, uri=",
                              words[at]));
    row.conditions.push_back(std::move(condition));
  }
  if (row.conditions.empty() || at == words.size())
    return fail(ErrorCode::InvalidInput,
                "a row is: certificate cn=NAME [o=…] [ou=…] [email=…] [dns=…] [uri=…] ROLE "
                "[pools=…] [racks=…] [nodes=…]; a value with spaces is in double quotes");
  TRY(role, roleOf(words[at]));
  row.role = role;
  TRY(scope, parseScope({words.begin() + static_cast<std::ptrdiff_t>(at) + 1, words.end()}));
  row.scope = std::move(scope);
  return {};
}

Result<void> AccessParser::oidcValue(OidcSettings& into, const std::string& key,
                                     const std::string& value) {
  const auto need_https = [&](std::string& where) -> Result<void> {
    const auto url = io::Url::parse(value);
    if (!url || url->scheme != "https" || value.find_first_of("?#") != std::string::npos)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("{} is an address that begins with https://, without ? and #", key));
    where = value;
    return {};
  };
  if (value.empty()) return fail(ErrorCode::InvalidInput, key + "= has no value");
  if (key == "issuer") return need_https(into.issuer);
  if (key == "page") {
    TRY_OK(need_https(into.page));
    while (into.page.ends_with('/')) into.page.pop_back();
    if (into.page.find('/', std::string_view("https://").size()) != std::string::npos)
      return fail(ErrorCode::InvalidInput,
                  "page is where the page is: https://HOST:PORT, without a path");
    return {};
  }
  if (key == "client-id") return into.client_id = value, Result<void>();
  if (key == "name") return into.name_claim = value, Result<void>();
  if (key == "groups") return into.group_claim = value, Result<void>();
  if (key == "scopes") {
    into.scopes = value;
    TRY(scopes, wordsOf(value));
    if (std::ranges::find(scopes, kOpenIdScope) == scopes.end())
      return fail(ErrorCode::InvalidInput, "scopes has the word openid in it");
    return {};
  }
  if (key == "secret-file" || key == "ca") {
    TRY(path, absoluteFile(value));
    (key == "ca" ? into.ca_file : into.secret_file) = std::move(path);
    return {};
  }
  return fail(ErrorCode::InvalidInput,
              fmt::format("\"{}\" is nothing that a row oidc knows; there are: issuer, client-id, "
                          "name, groups, scopes, secret-file, ca, page",
                          key));
}

void AccessParser::oidc(const Words& words) {
  OidcSettings settings;
  if (const auto read = readOidc(words, settings); !read) {
    say(read.error().text());
    closeOidc();
  } else {
    out_.oidc_ = std::move(settings);
  }
}

Result<void> AccessParser::readOidc(const Words& words, OidcSettings& settings) {
  if (out_.oidc_) return fail(ErrorCode::InvalidInput, "there is one row oidc");
  std::set<std::string> said;
  for (std::size_t at = 1; at < words.size(); ++at) {
    const auto [key, value] = splitAtEquals(words[at]);
    if (!isKeyAndValue(words[at]) || !said.insert(key).second)
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\": write KEY=VALUE, and each key once", words[at]));
    TRY_OK(oidcValue(settings, key, value));
  }
  if (settings.issuer.empty() || settings.client_id.empty() || settings.name_claim.empty())
    return fail(ErrorCode::InvalidInput,
                "a row is: oidc issuer=https://… client-id=… name=CLAIM [groups=CLAIM] [page=…] "
                "[secret-file=…] [ca=…] [scopes=…]; name is the claim that says who somebody is, "
                "and which people cannot change themselves");
  return {};
}

/// Persons are whom approvals count: of a principal that such a row may be about nobody knows who
/// it is.
void AccessParser::person(const Words& words) {
  const auto read = readPerson(words);
  if (read) return;
  say(read.error().text());
  const auto is_principal = [](const std::string& word) {
    return word.starts_with(kCertificatePrefix) || word.starts_with(kOidcPrefix);
  };
  if (words.size() >= 3 && std::all_of(words.begin() + 2, words.end(), is_principal)) {
    for (std::size_t at = 2; at < words.size(); ++at) out_.wrong_persons_[words[at]] = wrong_;
  } else {
    closeCertificates();
    closeOidc();
  }
}

Result<void> AccessParser::readPerson(const Words& words) {
  if (words.size() < 3 || !isPersonName(words[1]))
    return fail(ErrorCode::InvalidInput,
                "a row is: person NAME cert:COMMON-NAME oidc:NAME …: all of them are that person");
  for (std::size_t at = 2; at < words.size(); ++at) {
    const auto& principal = words[at];
    if (!principal.starts_with(kCertificatePrefix) && !principal.starts_with(kOidcPrefix))
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\": write cert:COMMON-NAME or oidc:NAME", principal));
    if (!out_.persons_.emplace(principal, words[1]).second)
      return fail(ErrorCode::InvalidInput, principal + " is somebody's already");
  }
  return {};
}

void AccessParser::finish(int last_line) {
  line_ = last_line;
  const bool has_ca = !out_.client_ca_.empty() || !out_.certificates_closed_.empty();
  if (has_certificates_ && !has_ca) {
    say("there are rows \"certificate\" and no authority that issues them: add a row client-ca "
        "FILE");
    closeCertificates();
  }
  if (!out_.client_crl_.empty() && !has_ca) {
    say("client-crl is of an authority: add a row client-ca FILE");
    closeCertificates();
  }
  if (has_logins_ && !out_.oidc_ && out_.oidc_closed_.empty()) {
    say("there are rows of OpenID Connect and no provider: add a row oidc issuer=https://… "
        "client-id=… name=CLAIM");
    closeOidc();
  }
}

AccessTable AccessTable::parse(std::string_view text, const std::string& file, LastRow last) {
  AccessTable out;
  AccessParser parser(out, file);
  std::istringstream in{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    if (last == LastRow::MustEnd && in.eof())
      parser.cut(++number, line);
    else
      parser.line(++number, line);
  }
  parser.finish(number);
  return out;
}

Result<AccessTable> AccessTable::read(const std::filesystem::path& file) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return AccessTable{};
    return fail(ErrorCode::Unavailable, fmt::format("cannot look at {}", file.string()));
  }
  TRY_OK(checkTrusted(file, found, false));
  TRY(text, io::readFile(file, kMaxFileBytes));
  return parse(text, file.string(), LastRow::MustEnd);
}

bool isKnownUser(const std::string& name) {
  if (numberOf(name)) return true;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(kLookupBytes);
  return ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found;
}

bool isKnownGroup(const std::string& name) { return groupIdOf(name).has_value(); }

Result<std::string> readTrustedFile(const std::filesystem::path& file, bool is_secret) {
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0)
    return fail(errno == ENOENT ? ErrorCode::NotFound : ErrorCode::Unavailable,
                fmt::format("{} cannot be read, and the access file names it", file.string()));
  TRY_OK(checkTrusted(file, found, is_secret));
  return io::readFile(file, kMaxTrustedBytes);
}

namespace {

Error wrongRow(const std::string& wrong) {
  return Error(ErrorCode::InvalidInput,
               wrong + " (a row that may be about who asks, and lets nobody in until it is right)");
}

Error nobody() { return Error(ErrorCode::NotFound, "no row of the access file names who asks"); }

}  // namespace

Result<std::string> AccessTable::personOf(const std::string& principal,
                                          const std::string& otherwise) const {
  if (const auto wrong = wrong_persons_.find(principal); wrong != wrong_persons_.end())
    return fail(wrongRow(wrong->second));
  const auto found = persons_.find(principal);
  return found == persons_.end() ? otherwise : found->second;
}

Result<Identity> AccessTable::identify(const io::CertificateNames& certificate) const {
  const auto row = std::ranges::find_if(
      certificates_, [&](const CertificateRow& each) { return fits(each, certificate); });
  const auto& name = !certificate.common_name.empty() ? certificate.common_name
                     : !certificate.emails.empty()    ? certificate.emails.front()
                     : !certificate.dns.empty()       ? certificate.dns.front()
                                                      : certificate.common_name;
  if (row == certificates_.end() || !isCertificateName(name)) return fail(nobody());
  if (!row->wrong.empty()) return fail(wrongRow(row->wrong));
  const auto principal = std::string(kCertificatePrefix) + name;
  Identity out{principal, Way::Certificate, row->role, row->scope, certificate.not_after};
  TRY(person, personOf(principal, name));
  out.person = std::move(person);
  out.account = "key:" + certificate.key_id;
  return out;
}

Result<Identity> AccessTable::identify(const OidcAccount& account) const {
  const auto row = std::ranges::find_if(oidc_rows_, [&](const AccessRow& each) {
    return each.who.empty() ||
           (each.is_group ? account.groups.contains(each.who) : each.who == account.name);
  });
  if (row == oidc_rows_.end() || !isPersonName(account.name)) return fail(nobody());
  if (!row->wrong.empty()) return fail(wrongRow(row->wrong));
  const auto principal = std::string(kOidcPrefix) + account.name;
  Identity out{principal, Way::Oidc, row->role, row->scope, std::nullopt};
  TRY(person, personOf(principal, account.name));
  out.person = std::move(person);
  out.account = "oidc:" + io::sha256Hex(account.issuer + "\n" + account.subject).substr(0, 32);
  return out;
}

Result<Identity> AccessTable::identify(const io::PeerCredentials& peer) const {
  Identity out{userNameOf(peer.uid), Way::UnixSocket, Role::Admin, {}, std::nullopt};
  if (peer.uid == 0 || peer.uid == ::geteuid()) return out;
  for (const auto& row : rows_) {
    const auto number = numberOf(row.who);
    const bool fits = row.who.empty() ? true
                      : row.is_group  ? isMember(peer, row.who)
                      : number        ? *number == peer.uid
                                      : row.who == out.principal;
    if (!fits) continue;
    if (!row.wrong.empty()) return fail(wrongRow(row.wrong));
    out.role = row.role;
    out.scope = row.scope;
    return out;
  }
  if (!isMember(peer, kViewerGroup)) return fail(nobody());
  out.role = Role::Viewer;
  return out;
}

}  // namespace muster::api
