// SPDX-License-Identifier: Apache-2.0
#include "bmc/trust.h"

#include "base/io/crypto.h"
#include "bmc/bmc.h"
#include "inventory/model/bmc_trust.h"
#include "inventory/model/cluster.h"
#include "inventory/model/credentials.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <sstream>

namespace muster::bmc {
namespace {

constexpr std::string_view kRefusalKeyName = "bmc.refused-key";
constexpr std::size_t kRefusalKeyBytes = 32;
constexpr std::size_t kMaxRefusals = 2;  ///< the password, and the one that it is being changed to

/// What the store keeps of a rotation to the password of this digest.
std::string rotationMark(Rotation state, const std::string& digest) {
  switch (state) {
    case Rotation::Interrupted:
      return "begun " + digest;
    case Rotation::Done:
      return "done " + digest;
    case Rotation::None:
      break;
  }
  return "";
}

std::vector<std::string> wordsOf(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

Result<std::string> hmacSha256Hex(const std::string& key, const std::string& message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, message.size(),
            out.data(), &size)) {
    return fail(ErrorCode::Internal, "OpenSSL cannot compute an HMAC");
  }
  return io::toHex(std::string_view(reinterpret_cast<const char*>(out.data()), size));
}

Result<std::string> refusalKeyOf(lifecycle::Store& store) {
  const std::string name(kRefusalKeyName);
  TRY(known, store.getValue(name));
  if (known) return *known;
  TRY_OK(store.exchangeValue(name, std::nullopt, io::randomToken(kRefusalKeyBytes)));
  TRY(now, store.getValue(name));
  if (!now) return fail(ErrorCode::Internal, "the store lost the value " + name);
  return *now;
}

}  // namespace

Result<std::optional<std::string>> TrustMemory::pin() {
  TRY(value, store_.getValue(pinKey()));
  if (value && value->empty()) value = std::nullopt;
  return value;
}

Result<void> TrustMemory::setPin(lifecycle::Store& store, const std::string& fingerprint) const {
  TRY(before, store.getValue(pinKey()));
  if (before && !before->empty() && *before != fingerprint) {
    return fail(ErrorCode::Conflict,
                "another certificate of " + node_.str() + "'s BMC was pinned at the same moment");
  }
  TRY(set, store.exchangeValue(pinKey(), before, fingerprint));
  if (!set)
    return fail(ErrorCode::Conflict,
                "the pin of " + node_.str() + "'s BMC changed at the same moment");
  return {};
}

Async<void> TrustMemory::setPin(lifecycle::Journal& journal, std::string fingerprint) {
  co_return co_await journal.write<void>(
      [self = *this, fingerprint = std::move(fingerprint)](lifecycle::Store& store) {
        return self.setPin(store, fingerprint);
      });
}

Result<void> TrustMemory::expectPin(const std::string& fingerprint) {
  return store_.putValue(nextPinKey(), fingerprint);
}

Result<std::string> TrustMemory::pinInPlaceOf(const std::string& declared) {
  TRY(value, store_.getValue(installedKey()));
  const auto words = wordsOf(value.value_or(""));
  return words.size() == 2 && words[0] == declared ? words[1] : declared;
}

Result<bool> TrustMemory::promotePin(const std::string& shown, const std::string& declared) {
  TRY(next, store_.getValue(nextPinKey()));
  if (shown.empty() || next.value_or("") != shown) return false;
  if (!declared.empty()) TRY_OK(store_.putValue(installedKey(), declared + " " + shown));
  TRY_OK(store_.putValue(
      pinKey(),
      shown));  // in this order: a process that dies in between finds both, and does it again
  TRY_OK(store_.putValue(nextPinKey(), ""));
  return true;
}

Result<std::string> TrustMemory::hostKeys() {
  TRY(value, store_.getValue(hostKeysKey()));
  return value.value_or("");
}

Result<std::optional<SerialConsoleEndpoint>> TrustMemory::consoleEndpoint() {
  TRY(value, store_.getValue(consoleKey()));
  SerialConsoleEndpoint out{.ssh = true};
  const auto text = value.value_or("");
  out.ssh_port = std::atoi(text.c_str());
  if (out.ssh_port <= 0) return std::optional<SerialConsoleEndpoint>();
  if (const auto blank = text.find(' '); blank != std::string::npos)
    out.ssh_command = text.substr(blank + 1);
  return std::optional(std::move(out));
}

Result<void> TrustMemory::setConsoleEndpoint(const std::optional<SerialConsoleEndpoint>& place) {
  if (!place) return store_.putValue(consoleKey(), "");
  return store_.putValue(consoleKey(),
                         fmt::format("{}{}", place->ssh_port.value_or(kSshPort),
                                     place->ssh_command ? " " + *place->ssh_command : ""));
}

Error TrustMemory::pinMismatch(const std::string& address, const std::string& pinned,
                               const std::string& shown) const {
  std::string text = fmt::format(
      "the BMC at {} shows {}, but {} was pinned at first contact; nothing was sent to it. Find "
      "out whether the "
      "BMC or its certificate was replaced on purpose; if so, run `muster bmc trust reset {}`",
      address, shown.empty() ? "another TLS certificate" : "the TLS certificate " + shown, pinned,
      node_.str());
  return Error(ErrorCode::Denied, std::move(text));
}

Error TrustMemory::declaredMismatch(const std::string& address, const std::string& pinned,
                                    const std::string& shown) const {
  return Error(
      ErrorCode::Denied,
      fmt::format("the BMC at {} shows {}, but the inventory declares {}; no password was sent to "
                  "it. Find out whether the BMC or its certificate was "
                  "replaced on purpose; if so, write the new fingerprint as bmc_pin of {}",
                  address,
                  shown.empty() ? "another TLS certificate" : "the TLS certificate " + shown,
                  pinned, node_.str()));
}

Error TrustMemory::notOfCa(const std::string& address, const std::filesystem::path& ca,
                           const std::string& shown, const std::string& why) const {
  return Error(ErrorCode::Denied,
               fmt::format("the BMC at {} shows the TLS certificate {}, which does not pass the "
                           "check against bmc_ca {}: {}; no password was sent to it. It must be "
                           "signed by that CA, be in date and name the BMC as the inventory does; "
                           "or declare this very certificate: bmc_pin of {}",
                           address, shown, ca.string(), why, node_.str()));
}

Error TrustMemory::undeclared(const std::string& address, const std::string& shown) const {
  return Error(ErrorCode::Denied,
               fmt::format("bmc_trust is declared, and the inventory does not declare the "
                           "certificate of the BMC at {}; no password was sent to it. It shows {}: "
                           "compare that with the BMC's own display or web page, then write "
                           "bmc_pin: {} to {}, or bmc_ca with the CA that signed it",
                           address, shown, shown, node_.str()));
}

Result<std::string> TrustMemory::digest(const std::string& username, const Secret& password) {
  TRY(key, refusalKeyOf(store_));
  const std::string separator(1, '\0');
  return hmacSha256Hex(key, node_.str() + separator + username + separator + password.reveal());
}

Result<void> TrustMemory::mayTry(const std::string& address, const std::string& username,
                                 const Secret& password) {
  TRY(before, store_.getValue(refusalKey()));
  if (!before || before->empty()) return {};
  TRY(now, digest(username, password));
  for (const auto& digest : wordsOf(*before))
    if (io::equalConstantTime(digest, now)) return fail(refused(address, username));
  return {};
}

Result<void> TrustMemory::rememberRefusal(const std::string& username, const Secret& password) {
  TRY(value, digest(username, password));
  TRY(before, store_.getValue(refusalKey()));
  auto words = wordsOf(before.value_or(""));
  std::erase(words, value);
  words.insert(words.begin(), value);
  if (words.size() > kMaxRefusals) words.resize(kMaxRefusals);
  return store_.putValue(refusalKey(), fmt::format("{}", fmt::join(words, " ")));
}

Result<void> TrustMemory::forgetRefusalOf(const std::string& username, const Secret& password) {
  TRY(before, store_.getValue(refusalKey()));
  if (!before || before->empty()) return {};
  TRY(value, digest(username, password));
  auto words = wordsOf(*before);
  if (std::erase(words, value) == 0) return {};
  return store_.putValue(refusalKey(), fmt::format("{}", fmt::join(words, " ")));
}

Result<bool> TrustMemory::neverRotated() {
  TRY(mark, store_.getValue(rotationKey()));
  return !mark || mark->empty();
}

Result<Rotation> TrustMemory::rotation(const std::string& username, const Secret& next) {
  TRY(mark, store_.getValue(rotationKey()));
  TRY(value, digest(username, next));
  for (const auto state : {Rotation::Interrupted, Rotation::Done})
    if (mark == rotationMark(state, value)) return state;
  return Rotation::None;
}

Result<void> TrustMemory::setRotation(const std::string& username, const Secret& next,
                                      Rotation state) {
  TRY(value, digest(username, next));
  return store_.putValue(rotationKey(), rotationMark(state, value));
}

Result<Secret> passwordOf(const inventory::Credential& credential, const std::string& username,
                          TrustMemory trust) {
  TRY(never, trust.neverRotated());
  if (never || !credential.rotate_to.declared()) return credential.password.read();
  TRY(next, credential.rotate_to.read());
  TRY(state, trust.rotation(username, next));
  return state == Rotation::Done ? Result<Secret>(next) : credential.password.read();
}

Result<BmcTrustState> remembered(const inventory::Cluster& cluster, lifecycle::Store& store,
                                 const NodeName& node) {
  BmcTrustState out;
  TrustMemory trust(store, node);
  TRY(pin, trust.pin());
  out.pin = pin.value_or("");
  const auto* declared = cluster.findNode(node);
  if (declared) {
    const auto said = inventory::bmcTrustOf(cluster, *declared);
    out.trust = !said.pin.empty()      ? BmcTrustBy::Pin
                : !said.ca_pem.empty() ? BmcTrustBy::Ca
                : cluster.bmc_trust == inventory::BmcTrustPolicy::Declared
                    ? BmcTrustBy::Nothing
                    : BmcTrustBy::FirstContact;
    if (!said.pin.empty()) {
      TRY(holds, trust.pinInPlaceOf(said.pin));
      out.inventory_is_behind = holds != said.pin;
      out.pin = holds;
    }
  }
  const auto credential =
      declared ? cluster.credentials.find(inventory::bmcCredentialOf(cluster, *declared))
               : cluster.credentials.end();
  if (credential == cluster.credentials.end()) return out;
  const auto user = declared->bmc.username_override.empty() ? credential->second.username
                                                            : declared->bmc.username_override;
  TRY(password, passwordOf(credential->second, user, trust));
  const auto may = trust.mayTry(declared->bmc.url, user, password);
  if (!may && may.error().code() != ErrorCode::Denied) return fail(may.error());
  out.password_refused = !may;
  if (!credential->second.rotate_to.declared()) return out;
  TRY(next, credential->second.rotate_to.read());
  TRY(rotation, trust.rotation(user, next));
  out.rotation = rotation;
  return out;
}

Result<void> TrustMemory::forgetRefusal() {
  TRY(before, store_.getValue(refusalKey()));
  if (!before || before->empty()) return {};
  return store_.putValue(refusalKey(), "");
}

Error TrustMemory::refused(const std::string& address, const std::string& username) const {
  return Error(ErrorCode::Denied,
               fmt::format("the BMC at {} refused the password of user \"{}\"; muster does not try "
                           "it again, so that the account is not "
                           "locked. Correct the credential of {} in the inventory (a changed "
                           "password is tried at once); if the account "
                           "was put right on the BMC instead, run `muster bmc auth reset {}`",
                           address, username, node_.str(), node_.str()));
}

Async<std::string> TrustMemory::exchangeSession(lifecycle::Journal& journal, std::string path) {
  co_return co_await journal.write<std::string>(
      [key = sessionKey(), path = std::move(path)](lifecycle::Store& store) -> Result<std::string> {
        TRY(before, store.getValue(key));
        if (before.value_or("") != path) TRY_OK(store.putValue(key, path));
        return before.value_or("");
      });
}

Result<void> forgetPin(lifecycle::Store& store, const NodeName& node) {
  TrustMemory trust(store, node);
  TRY_OK(trust.setHostKeys(""));
  TRY_OK(trust.setConsoleEndpoint({}));
  TRY_OK(store.putValue("bmc.pin-installed." + node.str(), ""));
  return store.putValue("bmc.pin." + node.str(), "");
}
Result<void> forgetRefusal(lifecycle::Store& store, const NodeName& node) {
  return TrustMemory(store, node).forgetRefusal();
}

}  // namespace muster::bmc
