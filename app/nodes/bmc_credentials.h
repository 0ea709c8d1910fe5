// SPDX-License-Identifier: Apache-2.0
// bmc show, rotate, certificate: what BMCs and muster authenticate each other with.
#pragma once

#include "app/site/options.h"
#include "bmc/bmc.h"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace muster::lifecycle {
struct Intent;
}

namespace muster::app {

struct BmcIdentity {
  NodeName node;
  std::string url;
  bmc::BmcTrustState memory;
  bool rotates = false;  ///< its credential declares a next password
  std::string signer;    ///< the program that signs its certificates; empty: the site's authority
};
/// From the store; no BMC is asked. `nodes`: hostlist; empty: all.
Result<std::vector<BmcIdentity>> bmcIdentities(const Options& options, const std::string& nodes);
/// The same of an inventory and a store that are open.
Result<BmcIdentity> bmcIdentity(const inventory::Cluster& cluster, lifecycle::Store& store,
                                const inventory::Node& node);
/// As `bmc show --json` prints it.
nlohmann::json toJson(const BmcIdentity& identity);
std::string_view wordOf(bmc::BmcTrustBy trust);   ///< "bmc_pin"
std::string_view wordOf(bmc::Rotation rotation);  ///< none, interrupted, done

/// How notes call the changes.
inline constexpr std::string_view kBmcPasswordChange = "change of the BMC's password";
inline constexpr std::string_view kBmcCertificateChange = "certificate of the BMC";

Error noNextPassword(const NodeName& node);
/// Errors: NotFound (the credential of the node's BMC declares no next password: what to declare)
Result<void> requireNextPassword(const inventory::Cluster& cluster, const NodeName& node);

/// No action is under way on the node: no firmware update loses its login half-way. Errors:
/// Conflict
Result<void> requireNoAction(const std::vector<lifecycle::Intent>& open, const NodeName& node);

/// How a change of many BMCs ended: one first, then some at a time, until several have failed.
struct BmcChangeReport {
  std::size_t asked = 0;
  std::vector<NodeName> done, not_begun;
  std::map<NodeName, Error> failed;
  /// The inventory still names the certificate that was replaced: by node, what to declare.
  std::map<NodeName, std::string> pins_to_declare;
};
/// Hears each BMC as it ends.
using BmcChanged = std::function<void(const NodeName&, const Result<void>&)>;

/// Changes the passwords. Errors: NotFound (as requireNextPassword), Conflict (an action is under
/// way on one)
Result<BmcChangeReport> rotateBmcPasswords(const Options& options, const std::string& nodes,
                                           const BmcChanged& changed);

/// Each BMC makes a key, gets a certificate, and is trusted by it from then on. Errors: NotFound,
/// Conflict (an action is under way on one)
Result<BmcChangeReport> issueBmcCertificates(const Options& options, const std::string& nodes,
                                             const BmcChanged& changed);

}  // namespace muster::app
