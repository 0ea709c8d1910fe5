// SPDX-License-Identifier: Apache-2.0
// What muster remembers about a BMC between runs: the certificate of first contact and the last
// refused credential.
//
// Store values:
//   bmc.pin.NODE        SHA-256 of the certificate (DER, hex); "" = none
//   bmc.pin-next.NODE   SHA-256 of a certificate that is being installed: when the BMC shows it, it
//   is the pin; "" = none bmc.pin-installed.NODE  "DECLARED INSTALLED": the certificate that muster
//   has put in the place of the one that the inventory declares bmc.ssh.NODE        host keys of
//   its SSH server as first contact showed them, lines of known_hosts under the node's name; "" =
//   none bmc.console.NODE    where its serial console is by SSH, as it said: port, and after a
//   blank the command, which it need not say; "" = not known bmc.refused.NODE    HMAC-SHA-256 (hex)
//   of node, user and password that the BMC refused, two at most; "" = none bmc.rotation.NODE
//   "begun HMAC" before the password is changed to one with this HMAC, "done HMAC" after a login
//   has proved it bmc.session.NODE    path of the session that is open, so that whoever comes after
//   a killed process closes it; "" = none bmc.refused-key     random key of that HMAC, one per
//   state: a copied state folder shows nothing that can be looked up
#pragma once

#include "base/ids.h"
#include "base/log.h"
#include "bmc/bmc.h"
#include "lifecycle/store/journal.h"
#include "lifecycle/store/store.h"

#include <optional>
#include <string>

namespace muster::bmc {

class TrustMemory {
 public:
  TrustMemory(lifecycle::Store& store, NodeName node) : store_(store), node_(std::move(node)) {}

  Result<std::optional<std::string>> pin();
  /// First contact. Errors: Conflict when another certificate was pinned meanwhile
  Result<void> setPin(const std::string& fingerprint) { return setPin(store_, fingerprint); }
  /// The same in one commit with what others write.
  Async<void> setPin(lifecycle::Journal& journal, std::string fingerprint);
  /// Before a certificate is installed: it is expected from now on.
  Result<void> expectPin(const std::string& fingerprint);
  /// The pin becomes the expected certificate when that is what was shown. Answers whether it did.
  /// `declared`: the pin of the inventory, where it has one.
  Result<bool> promotePin(const std::string& shown, const std::string& declared = {});
  /// The certificate that holds where the inventory declares this one: itself, or what muster has
  /// installed in its place since.
  Result<std::string> pinInPlaceOf(const std::string& declared);

  // Refusals: what was shown, what was expected, and what to write where. Nothing secret was sent.
  /// Not the pinned one; `shown` may be empty.
  Error pinMismatch(const std::string& address, const std::string& pinned,
                    const std::string& shown) const;
  Error declaredMismatch(const std::string& address, const std::string& pinned,
                         const std::string& shown) const;
  Error notOfCa(const std::string& address, const std::filesystem::path& ca,
                const std::string& shown, const std::string& why) const;
  /// bmc_trust: declared, and nothing is.
  Error undeclared(const std::string& address, const std::string& shown) const;

  Result<std::string> hostKeys();
  /// Absent: not known.
  Result<std::optional<SerialConsoleEndpoint>> consoleEndpoint();
  Result<void> setConsoleEndpoint(const std::optional<SerialConsoleEndpoint>& place);
  Result<void> setHostKeys(const std::string& lines) {
    return store_.putValue(hostKeysKey(), lines);
  }

  /// Errors: Denied when the BMC has refused this very credential before. Nothing must be sent
  /// then.
  Result<void> mayTry(const std::string& address, const std::string& username,
                      const Secret& password);
  Result<void> rememberRefusal(const std::string& username, const Secret& password);
  /// A login worked: nothing is refused any more.
  Result<void> forgetRefusal();
  /// … while another password may still be the wrong one.
  Result<void> forgetRefusalOf(const std::string& username, const Secret& password);

  /// Of a change to this password. None as well when it was another one that was changed to.
  Result<Rotation> rotation(const std::string& username, const Secret& next);
  Result<void> setRotation(const std::string& username, const Secret& next, Rotation state);
  /// Nothing was ever changed: `next` need not be read to know that.
  Result<bool> neverRotated();
  Error refused(const std::string& address, const std::string& username) const;

  /// The path of a session that was not closed, "" when there is none; `path` is remembered in its
  /// place.
  Async<std::string> exchangeSession(lifecycle::Journal& journal, std::string path);

 private:
  Result<void> setPin(lifecycle::Store& store, const std::string& fingerprint) const;
  Result<std::string> digest(const std::string& username, const Secret& password);
  std::string pinKey() const { return "bmc.pin." + node_.str(); }
  std::string hostKeysKey() const { return "bmc.ssh." + node_.str(); }
  std::string consoleKey() const { return "bmc.console." + node_.str(); }
  std::string sessionKey() const { return "bmc.session." + node_.str(); }
  std::string refusalKey() const { return "bmc.refused." + node_.str(); }
  std::string rotationKey() const { return "bmc.rotation." + node_.str(); }
  std::string installedKey() const { return "bmc.pin-installed." + node_.str(); }
  std::string nextPinKey() const { return "bmc.pin-next." + node_.str(); }

  lifecycle::Store& store_;
  NodeName node_;
};

/// The account of a BMC as it holds now, for whoever else logs in with it (IPMI): the declared
/// password, or its `next` once that is in force.
Result<Secret> passwordOf(const inventory::Credential& credential, const std::string& username,
                          TrustMemory trust);

}  // namespace muster::bmc
