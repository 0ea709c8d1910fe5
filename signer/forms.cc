// SPDX-License-Identifier: Apache-2.0
#include "signer/forms.h"

#include "base/io/crypto.h"
#include "base/json_input.h"
#include "base/json_members.h"
#include "base/json_output.h"
#include "base/printable.h"
#include "base/utf8.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace muster::signer {
namespace {

using nlohmann::json;

constexpr std::string_view kCertificateFormat = "muster-certificate/1";
constexpr std::string_view kRevocationFormat = "muster-revocation/1";
constexpr std::string_view kListFormat = "muster-revocations/1";
constexpr std::string_view kAsOfFormat = "muster-revocations-as-of/1";
constexpr std::size_t kLevels = 6;
constexpr std::size_t kMaxValues = 500'000;
constexpr std::size_t kMaxWordsBytes = 16u << 10;  ///< a reason, a bound fact
constexpr std::size_t kMaxFacts = 1'000;
constexpr std::size_t kMaxLoggedBytes = 256;  ///< of a word in the log
constexpr std::size_t kChainDigits = 64;

constexpr std::array<std::pair<Statement, std::string_view>, 4> kStatements{{
    {Statement::NodeCertificate, "node-certificate"},
    {Statement::Revocation, "revocation"},
    {Statement::RevocationList, "revocation-list"},
    {Statement::ListAsOf, "list-as-of"},
}};
constexpr std::array<std::pair<CertificateKind, std::string_view>, 3> kKinds{{
    {CertificateKind::Agent, "agent"},
    {CertificateKind::Controller, "controller"},
    {CertificateKind::Bmc, "bmc"},
}};

std::unexpected<Error> denied(std::string why) {
  return fail(ErrorCode::Denied, "this is not signed: " + std::move(why));
}

bool isAlnum(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool isName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && isAlnum(name.front()) &&
         std::ranges::all_of(name,
                             [](char c) { return isAlnum(c) || c == '-' || c == '.' || c == '_'; });
}

/// What a subject's alternative names may be; io::CertificateAuthority looks at them once more.
bool isHost(std::string_view name) {
  return !name.empty() && name.size() <= 253 && (isAlnum(name.front()) || name.front() == ':') &&
         std::ranges::all_of(name, [](char c) {
           return isAlnum(c) || c == '-' || c == '.' || c == '_' || c == ':';
         });
}

bool isShort(const std::string& text) { return text.size() <= kMaxWordsBytes; }

/// {NAME: TEXT}; what is none of it is left out, and then missing in what is written anew.
json texts(const json& object) {
  json out = json::object();
  if (object.is_object())
    for (const auto& [name, value] : object.items())
      if (value.is_string()) out[name] = value;
  return out;
}

Result<void> checkTexts(const json& object, const char* what) {
  if (object.size() > kMaxFacts) return denied(fmt::format("more than {} in {}", kMaxFacts, what));
  for (const auto& [name, value] : object.items())
    if (name.size() > kMaxWordsBytes || !isShort(value.get_ref<const std::string&>()))
      return denied(fmt::format("an entry of {} is longer than {} bytes", what, kMaxWordsBytes));
  return {};
}

Result<WallTime> timeOf(const json& asked, const char* member) {
  auto time = parseWallTime(textOf(asked, member));
  if (!time) return denied(fmt::format("{} is no time", member));
  return *time;
}

std::int64_t numberOf(const json& asked, const char* member) {
  const auto found = asked.find(member);
  return found != asked.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
}

Result<void> checkNotAhead(WallTime said, std::optional<WallTime> now, const char* member) {
  if (!now || said <= *now + kClockSkew) return {};
  return denied(fmt::format("{} is {}, and the signer's clock says {}", member,
                            muster::toString(said), muster::toString(*now)));
}

Result<void> checkNow(WallTime said, std::optional<WallTime> now, const char* member) {
  TRY_OK(checkNotAhead(said, now, member));
  if (!now || said >= *now - kClockSkew) return {};
  return denied(fmt::format("{} is {}, and the signer's clock says {}", member,
                            muster::toString(said), muster::toString(*now)));
}

/// A word for the log: quoted, escaped, and so short that a line stays a line.
std::string logged(const std::string& text) {
  return jsonText(json(shortened(text, kMaxLoggedBytes)));
}

/// The form is the only way to write it.
Result<void> requireSame(const json& anew, std::string_view text) {
  if (jsonText(anew) == text) return {};
  return denied(
      "it is not in its form: a member that does not belong there, is missing, twice or "
      "of another type, or other order, spaces or escapes");
}

Result<SignedForm> nodeCertificate(const json& asked, std::string_view text,
                                   const std::string& key_id, std::optional<WallTime> now) {
  const auto node = textOf(asked, "node");
  if (!isName(node)) return denied(fmt::format("\"{}\" is no node's name", printable(node)));
  const auto bound = texts(asked.value("bound", json()));
  TRY_OK(checkTexts(bound, "bound"));
  TRY(proven, timeOf(asked, "proven_at"));
  TRY(issued, timeOf(asked, "issued_at"));
  TRY(expires, timeOf(asked, "expires_at"));
  json out{{"format", kCertificateFormat},
           {"node", node},
           {"basis", textOf(asked, "basis")},
           {"bound", bound},
           {"inventory_digest", textOf(asked, "inventory_digest")},
           {"proven_at", muster::toString(proven)},
           {"issued_at", muster::toString(issued)},
           {"expires_at", muster::toString(expires)},
           {"key_id", textOf(asked, "key_id")}};
  if (asked.contains("learnt")) {
    out["learnt"] = texts(asked["learnt"]);
    TRY_OK(checkTexts(out["learnt"], "learnt"));
  }
  std::string about_override;
  if (asked.contains("override")) {
    const auto& word = asked["override"];
    const auto by = textOf(word, "by");
    const auto reason = textOf(word, "reason");
    if (by.empty()) return denied("an override names who has given it");
    if (!isShort(by) || !isShort(reason)) return denied("an override's words are too long");
    out["override"] = {{"by", by}, {"reason", reason}};
    about_override = fmt::format(" override={} reason={}", logged(by), logged(reason));
    if (expires - issued > kMaxOverrideLife)
      return denied(
          fmt::format("an override lives for {} hours at most", kMaxOverrideLife.count()));
  }
  TRY_OK(requireSame(out, text));
  if (out["key_id"] != key_id)
    return fail(ErrorCode::Conflict,
                fmt::format("the certificate names key {}, and key {} signs here: the key was "
                            "rotated, or this signer has another one",
                            printable(textOf(asked, "key_id")), key_id));
  if (proven > issued || issued >= expires) return denied("its times are in no order");
  if (expires - proven > kMaxNodeCertificateLife)
    return denied(
        fmt::format("a certificate lives for {} hours at most", kMaxNodeCertificateLife.count()));
  TRY_OK(checkNow(issued, now, "issued_at"));
  return SignedForm{jsonText(out), fmt::format("node={} expires={}{}", node,
                                               muster::toString(expires), about_override)};
}

Result<json> revocationOf(const json& asked) {
  TRY(at, timeOf(asked, "at"));
  json out{{"certificate", textOf(asked, "certificate")},
           {"node", textOf(asked, "node")},
           {"at", muster::toString(at)},
           {"by", textOf(asked, "by")},
           {"reason", textOf(asked, "reason")}};
  TRY_OK(checkTexts(out, "a revocation"));
  return out;
}

Result<SignedForm> revocation(const json& asked, std::string_view text,
                              std::optional<WallTime> now) {
  const auto before = textOf(asked, "before");
  const auto number = numberOf(asked, "number");
  TRY(revoked, revocationOf(asked.value("revocation", json::object())));
  TRY_OK(requireSame({{"before", before}, {"number", number}, {"revocation", revoked}}, text));
  const bool is_chain = before.size() == kChainDigits &&
                        before.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (number < 1 || (number == 1 ? !before.empty() : !is_chain))
    return denied("a revocation has a number from 1, and the hash of those before it");
  TRY(at, timeOf(revoked, "at"));
  TRY_OK(checkNotAhead(at, now, "at"));
  const auto chain = revocationChain(before, number, jsonText(revoked));
  return SignedForm{revocationWords(number, chain),
                    fmt::format("number={} node={} by={}", number, logged(textOf(revoked, "node")),
                                logged(textOf(revoked, "by")))};
}

Result<SignedForm> revocationList(const json& asked, std::string_view text,
                                  std::optional<WallTime> now) {
  TRY(issued, timeOf(asked, "issued_at"));
  json revoked = json::array();
  const auto listed = asked.find("revoked");
  if (listed != asked.end() && listed->is_array())
    for (const auto& each : *listed) {
      TRY(one, revocationOf(each));
      revoked.push_back(std::move(one));
    }
  const auto number = numberOf(asked, "number");
  const auto count = static_cast<std::int64_t>(revoked.size());
  json out{{"format", kListFormat},
           {"number", number},
           {"issued_at", muster::toString(issued)},
           {"revoked", std::move(revoked)}};
  TRY_OK(requireSame(out, text));
  if (number < 0 || (now && number != count))
    return denied(fmt::format("list {} has {} revocations", number, count));
  TRY_OK(checkNotAhead(issued, now, "issued_at"));
  return SignedForm{jsonText(out), fmt::format("number={}", number)};
}

Result<SignedForm> listAsOf(const json& asked, std::string_view text, std::optional<WallTime> now) {
  TRY(as_of, timeOf(asked, "as_of"));
  const auto number = numberOf(asked, "number");
  json out{{"format", kAsOfFormat}, {"number", number}, {"as_of", muster::toString(as_of)}};
  TRY_OK(requireSame(out, text));
  if (number < 0) return denied("a list's number is 0 or more");
  TRY_OK(checkNow(as_of, now, "as_of"));
  return SignedForm{jsonText(out), fmt::format("number={}", number)};
}

std::chrono::hours longest(CertificateKind kind) {
  switch (kind) {
    case CertificateKind::Agent:
      return kMaxAgentLife;
    case CertificateKind::Controller:
      return kMaxControllerLife;
    case CertificateKind::Bmc:
      return kMaxBmcLife;
  }
  return {};
}

}  // namespace

std::string revocationChain(std::string_view before, std::int64_t number,
                            std::string_view revocation) {
  return io::sha256Hex(fmt::format("{} {} {}", before, number, revocation));
}
std::string revocationWords(std::int64_t number, std::string_view chain) {
  return fmt::format("{} {} {}", kRevocationFormat, number, chain);
}

Result<SignedForm> formOf(Statement statement, std::string_view text, const std::string& key_id,
                          std::optional<WallTime> now) {
  const JsonLimits limits{
      "the statement to sign",
      statement == Statement::RevocationList ? kMaxListBytes : kMaxStatementBytes,
      kLevels,
      kMaxValues,
      DuplicateKeys::Refused,
      BrokenUtf8::Refused};
  const auto asked = parseJson(text, limits);
  if (!asked) return denied(asked.error().text());
  if (!asked->is_object()) return denied("it is no JSON object");
  switch (statement) {
    case Statement::NodeCertificate:
      return nodeCertificate(*asked, text, key_id, now);
    case Statement::Revocation:
      return revocation(*asked, text, now);
    case Statement::RevocationList:
      return revocationList(*asked, text, now);
    case Statement::ListAsOf:
      return listAsOf(*asked, text, now);
  }
  return denied("there is no such statement");
}

Result<void> checkOrder(const CertificateOrder& order) {
  const auto shown = printable(order.name.substr(0, kMaxNameBytes));
  const bool is_controller = order.kind == CertificateKind::Controller;
  if (!isName(order.name) && !(order.kind == CertificateKind::Bmc && isHost(order.name) &&
                               order.name.size() <= kMaxNameBytes))
    return denied(fmt::format("\"{}\" is no name that a certificate is made for", shown));
  if (is_controller != (order.name == kControllerName))
    return denied(fmt::format("the name {} is the controller's, and \"{}\" was asked for as {}",
                              kControllerName, shown, toString(order.kind)));
  if (order.kind == CertificateKind::Agent ? !order.names.empty() : order.names.empty())
    return denied("servers have names and addresses, agents have none");
  if (order.names.size() > kMaxNames || !std::ranges::all_of(order.names, isHost))
    return denied(
        fmt::format("its names are not {} host names or addresses at most, without a "
                    "wildcard",
                    kMaxNames));
  const auto most = longest(order.kind);
  if (order.lifetime < std::chrono::hours(1) || order.lifetime > most)
    return denied(
        fmt::format("a lifetime of {} hours was asked for, and a certificate of kind {} "
                    "lives for 1 to {}",
                    order.lifetime.count(), toString(order.kind), most.count()));
  return {};
}

std::string_view toString(Statement statement) {
  return std::ranges::find(kStatements, statement, &decltype(kStatements)::value_type::first)
      ->second;
}
std::string_view toString(CertificateKind kind) {
  return std::ranges::find(kKinds, kind, &decltype(kKinds)::value_type::first)->second;
}
std::optional<Statement> statementOf(std::string_view word) {
  for (const auto& [statement, name] : kStatements)
    if (name == word) return Statement{statement};
  return std::nullopt;
}
std::optional<CertificateKind> certificateKindOf(std::string_view word) {
  for (const auto& [kind, name] : kKinds)
    if (name == word) return CertificateKind{kind};
  return std::nullopt;
}

}  // namespace muster::signer
