// What muster remembers about a BMC between runs: the certificate of first contact and the last refused credential.
//
// Store values:
//   bmc.pin.NODE        SHA-256 of the certificate (DER, hex); "" = none
//   bmc.refused.NODE    HMAC-SHA-256 (hex) of node, user and password that the BMC refused; "" = none
//   bmc.session.NODE    path of the session that is open, so that whoever comes after a killed process closes it; "" = none
//   bmc.refused-key     random key of that HMAC, one per state: a copied state folder shows nothing that can be looked up
#pragma once

#include "base/ids.h"
#include "base/log.h"
#include "lifecycle/store.h"

#include <optional>
#include <string>

namespace muster::bmc {

class TrustMemory {
 public:
  TrustMemory(lifecycle::Store& store, NodeName node) : store_(store), node_(std::move(node)) {}

  Result<std::optional<std::string>> pin();
  /// First contact. Errors: Conflict when another certificate was pinned meanwhile
  Result<void> setPin(const std::string& fingerprint);
  /// The error for a certificate that is not the pinned one; `shown` may be empty.
  Error pinMismatch(const std::string& address, const std::string& pinned, const std::string& shown) const;

  /// Errors: Denied when the BMC has refused this very credential before. Nothing must be sent then.
  Result<void> mayTry(const std::string& address, const std::string& username, const Secret& password);
  Result<void> rememberRefusal(const std::string& username, const Secret& password);
  /// A login worked: nothing is refused any more.
  Result<void> forgetRefusal();
  Error refused(const std::string& address, const std::string& username) const;

  /// The path of a session that was not closed, "" when there is none; `path` is remembered in its place.
  Result<std::string> exchangeSession(const std::string& path);

 private:
  Result<std::string> digest(const std::string& username, const Secret& password);
  std::string pinKey() const { return "bmc.pin." + node_.str(); }
  std::string sessionKey() const { return "bmc.session." + node_.str(); }
  std::string refusalKey() const { return "bmc.refused." + node_.str(); }

  lifecycle::Store& store_;
  NodeName node_;
};

}  // namespace muster::bmc
