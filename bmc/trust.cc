#include "bmc/trust.h"

#include "base/io/crypto.h"
#include "bmc/bmc.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>

namespace muster::bmc {
namespace {

constexpr std::string_view kRefusalKeyName = "bmc.refused-key";
constexpr std::size_t kRefusalKeyBytes = 32;

Result<std::string> hmacSha256Hex(const std::string& key, const std::string& message) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned int size = 0;
  const auto* data = reinterpret_cast<const unsigned char*>(message.data());
  if (!HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), data, message.size(), out.data(), &size)) {
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

Result<void> TrustMemory::setPin(const std::string& fingerprint) {
  TRY(before, store_.getValue(pinKey()));
  if (before && !before->empty() && *before != fingerprint) {
    return fail(ErrorCode::Conflict, "another certificate of " + node_.str() + "'s BMC was pinned at the same moment");
  }
  TRY(set, store_.exchangeValue(pinKey(), before, fingerprint));
  if (!set) return fail(ErrorCode::Conflict, "the pin of " + node_.str() + "'s BMC changed at the same moment");
  return {};
}

Error TrustMemory::pinMismatch(const std::string& address, const std::string& pinned, const std::string& shown) const {
  std::string text = fmt::format("the BMC at {} shows {}, but {} was pinned at first contact; nothing was sent to it. Find out whether the "
                                 "BMC or its certificate was replaced on purpose; if so, run `muster bmc forget-pin {}`",
                                 address, shown.empty() ? "another TLS certificate" : "the TLS certificate " + shown, pinned, node_.str());
  return Error(ErrorCode::Denied, std::move(text));
}

Result<std::string> TrustMemory::digest(const std::string& username, const Secret& password) {
  TRY(key, refusalKeyOf(store_));
  const std::string separator(1, '\0');
  return hmacSha256Hex(key, node_.str() + separator + username + separator + password.reveal());
}

Result<void> TrustMemory::mayTry(const std::string& address, const std::string& username, const Secret& password) {
  TRY(before, store_.getValue(refusalKey()));
  if (!before || before->empty()) return {};
  TRY(now, digest(username, password));
  if (io::equalConstantTime(*before, now)) return fail(refused(address, username));
  return {};
}

Result<void> TrustMemory::rememberRefusal(const std::string& username, const Secret& password) {
  TRY(value, digest(username, password));
  return store_.putValue(refusalKey(), value);
}

Result<void> TrustMemory::forgetRefusal() {
  TRY(before, store_.getValue(refusalKey()));
  if (!before || before->empty()) return {};
  return store_.putValue(refusalKey(), "");
}

Error TrustMemory::refused(const std::string& address, const std::string& username) const {
  return Error(ErrorCode::Denied,
               fmt::format("the BMC at {} refused the password of user \"{}\"; muster does not try it again, so that the account is not "
                           "locked. Correct the credential of {} in the inventory (a changed password is tried at once); if the account "
                           "was put right on the BMC instead, run `muster bmc forget-refusal {}`",
                           address, username, node_.str(), node_.str()));
}

Result<std::string> TrustMemory::exchangeSession(const std::string& path) {
  TRY(before, store_.getValue(sessionKey()));
  if (before.value_or("") != path) TRY_OK(store_.putValue(sessionKey(), path));
  return before.value_or("");
}

Result<void> forgetPin(lifecycle::Store& store, const NodeName& node) { return store.putValue("bmc.pin." + node.str(), ""); }
Result<void> forgetRefusal(lifecycle::Store& store, const NodeName& node) { return TrustMemory(store, node).forgetRefusal(); }

}  // namespace muster::bmc
