// SPDX-License-Identifier: Apache-2.0
// Bmc: one machine's management controller as phases see it, all roles in one. Redfish, IPMI and
// libvirt are behind it; the arbiter in front.
#pragma once

#include "base/held.h"
#include "base/ids.h"
#include "base/io/http.h"
#include "base/result.h"
#include "bmc/raid.h"
#include "bmc/roles.h"
#include "inventory/model/fwd.h"
#include "lifecycle/store/store.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace muster::bmc {

class EventSource;

class Bmc : public Power,
            public Boot,
            public Bios,
            public Accounts,
            public Inventory,
            public Updates,
            public Sensors,
            public Events,
            public Console,
            public Raid {
 public:
  std::string address() const override = 0;
  /// Forgets the session (login, where resources are) and begins a new one. Drivers without a
  /// session do nothing.
  virtual Async<void> newSession();
};

/// What decides whether a BMC gets the password.
enum class BmcTrustBy {
  Pin,           ///< the inventory's bmc_pin
  Ca,            ///< its bmc_ca
  FirstContact,  ///< the certificate that was shown first
  Nothing,       ///< bmc_trust: declared, and nothing is: it gets none
};

/// What is known of a node's BMC without asking it.
struct BmcTrustState {
  std::string pin;  ///< SHA-256 of the certificate that holds; "": none yet
  BmcTrustBy trust = BmcTrustBy::FirstContact;
  bool inventory_is_behind = false;    ///< muster has installed `pin` in the place of the bmc_pin
                                       ///< that the inventory still names
  bool password_refused = false;       ///< the declared password was refused, so it is not sent
  Rotation rotation = Rotation::None;  ///< to the credential's `next`
};
Result<BmcTrustState> remembered(const inventory::Cluster& cluster, lifecycle::Store& store,
                                 const NodeName& node);

/// All BMCs of the cluster: one arbiter (session, rate, lock, lock-out protection, TLS pin) per
/// BMC.
class BmcFleet {
 public:
  virtual ~BmcFleet() = default;
  /// The node's BMC; lives as long as the fleet.
  virtual Bmc& at(const NodeName& node) = 0;
  /// The same BMC by IPMI alone, behind an arbiter of its own; null: not declared. For what a
  /// person orders although Redfish is silent.
  virtual Bmc* ipmiOf(const NodeName&) { return nullptr; }
  /// The stream of events of the node's BMC, beside its arbiter; null: it has none. Lives as long
  /// as the fleet.
  virtual EventSource* eventsOf(const NodeName&) { return nullptr; }
  /// Ends sessions. Best effort, bounded by a few seconds.
  virtual Async<void> close() = 0;
};

/// Redfish over HTTPS for "https://…", libvirt for "libvirt:DOMAIN". Pins and refused passwords
/// live in the store.
std::unique_ptr<BmcFleet> makeBmcFleet(const inventory::Cluster& cluster, lifecycle::Store& store,
                                       Clock& clock, Workers& workers);

/// A BMC that no node declares: memory (pin, refused passwords) goes under `key` instead of a
/// node's name.
struct UndeclaredBmcOptions {
  NodeName key;
  std::string url;
  Held<inventory::Credential> credential;
  std::string certificate =
      {};  ///< SHA-256 of what it showed when it was asked without a password: no other one gets it
  bool approved =
      false;  ///< a person has approved that certificate: it counts whatever was remembered before
};
/// Behind an arbiter of its own, as a fleet's BMCs are. The caller awaits close() before it lets
/// go.
class UndeclaredBmc {
 public:
  virtual ~UndeclaredBmc() = default;
  virtual Bmc& bmc() = 0;
  virtual Async<void> close() = 0;
};
std::unique_ptr<UndeclaredBmc> makeUndeclaredBmc(
    UndeclaredBmcOptions who, lifecycle::Store& store, Clock& clock, Workers& workers,
    std::function<std::unique_ptr<io::HttpClient>(io::TlsTrust)> make_client);
/// Whether this BMC has refused the credential before, so that nothing would be sent.
Result<bool> isRefused(lifecycle::Store& store, const UndeclaredBmcOptions& who);
/// The node's BMC is the one that was met as `undeclared`: its certificate is pinned from the first
/// contact on.
Result<void> inheritPin(lifecycle::Store& store, const NodeName& undeclared, const NodeName& node);

/// After an operator has seen to it: trust the certificate and the SSH host key that the BMC shows
/// next.
Result<void> forgetPin(lifecycle::Store& store, const NodeName& node);
/// After an operator has put the account right on the BMC: the same password may be tried once
/// more.
Result<void> forgetRefusal(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::bmc
