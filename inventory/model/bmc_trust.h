// SPDX-License-Identifier: Apache-2.0
// How a BMC proves who it is before a password goes to it, and which account is used there.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace muster::inventory {

struct Cluster;
struct Node;

/// What happens at a BMC of which the inventory says neither certificate nor CA.
enum class BmcTrustPolicy {
  FirstContact,  ///< the certificate that it shows first is pinned, and the password is sent
  Declared,      ///< no password is sent
};

/// At most one of pin and CA.
struct BmcTrust {
  std::string pin = {};  ///< SHA-256 of its TLS certificate (DER), 64 lower-case hex digits
  std::filesystem::path ca_file = {};
  std::string ca_pem = {};  ///< content of ca_file: roots that its certificate must lead to; name
                            ///< or address are compared as well
  std::string ssh_key =
      {};  ///< host key of its SSH server, "ssh-ed25519 AAAA…"; for consoles by SSH

  bool declaresCertificate() const { return !pin.empty() || !ca_pem.empty(); }
};

/// What holds for a node's BMC: its own pin or CA, else its profile's; likewise the SSH host key.
BmcTrust bmcTrustOf(const Cluster& cluster, const Node& node);

/// Name of the credential for a node's BMC: its own, else its profile's.
const std::string& bmcCredentialOf(const Cluster& cluster, const Node& node);

/// "declared", "first-contact": as the inventory spells it.
std::string_view word(BmcTrustPolicy policy);

}  // namespace muster::inventory
