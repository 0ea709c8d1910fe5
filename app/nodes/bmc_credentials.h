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

namespace muster::app {

struct BmcIdentity {
  NodeName node;
  std::string url;
  bmc::BmcTrustState memory;
  bool rotates = false;  ///< its credential declares a next password
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

struct BmcRotation {
  NodeName node;
  bmc::Rotation state = bmc::Rotation::None;
};
/// How far each of these nodes is; nothing is changed. Errors: NotFound (a node, or its credential
/// declares no next password)
Result<std::vector<BmcRotation>> bmcRotations(const Options& options, const std::string& nodes);
/// Changes the passwords. Errors: those of bmcRotations, Conflict (an action is under way on one)
Result<BmcChangeReport> rotateBmcPasswords(const Options& options, const std::string& nodes,
                                           const BmcChanged& changed);

struct BmcCertificateSigner {
  NodeName node;
  std::string url;
  std::string signer;  ///< the program that signs; empty: this controller's CA
};
/// Who would sign each BMC's certificate; nothing is changed.
Result<std::vector<BmcCertificateSigner>> bmcCertificateSigners(const Options& options,
                                                                const std::string& nodes);
/// Each BMC makes a key, gets a certificate, and is trusted by it from then on. Errors: NotFound,
/// Conflict (an action is under way on one)
Result<BmcChangeReport> issueBmcCertificates(const Options& options, const std::string& nodes,
                                             const BmcChanged& changed);

}  // namespace muster::app
