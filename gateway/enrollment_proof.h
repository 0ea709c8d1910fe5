// SPDX-License-Identifier: Apache-2.0
// What shows that a machine that asks to enroll is the node: docs/adr/0172.
//
// Boot files are public, so what they say proves nothing. One of these proofs must be there, and
// the first key that comes with one wins.
#pragma once

#include "base/result.h"
#include "gateway/network_evidence.h"
#include "inventory/model/fwd.h"

#include <optional>
#include <string>
#include <string_view>

namespace muster::gateway {

enum class EnrollmentProof {
  LeaseAndNeighbour,  ///< our DHCP server leased the address to the node's MAC after the node was
                      ///< armed, and the neighbour table shows that MAC
  Lease,              ///< the former alone: behind a router there are no neighbours to be seen
  Neighbour,          ///< the latter alone: another DHCP server gives the addresses
  KnownTpm,           ///< the TPM that proved itself as this node's before
  Approval,  ///< a person compared the key's fingerprint with the one on the node's console
};
std::string_view describe(EnrollmentProof proof);

/// Why the network proves nothing.
enum class ProofGap { None, NoLease, LeaseOfBefore, OtherNeighbour, NotANeighbour, BadAddress };

struct NetworkProof {
  std::optional<EnrollmentProof> proof;
  ProofGap gap = ProofGap::None;
};

/// Shape:  node × address of the caller × lease at arming → proof, or what is missing
/// Errors: those of NetworkEvidence
Result<NetworkProof> proofByNetwork(const inventory::Cluster& cluster, const inventory::Node& node,
                                    const std::string& remote_address,
                                    const std::string& lease_before,
                                    const NetworkEvidence& evidence);
/// For the operator: what is missing, with the node's MAC.
std::string describe(ProofGap gap, const inventory::Node& node, const std::string& remote_address);

/// What the network will have to show for this node; nodes of other networks than these need a
/// known TPM or an approval.
EnrollmentProof expectedProof(const inventory::Cluster& cluster, const inventory::Node& node);
/// For `plan`: which proof is used for how many nodes, a line each kind.
std::string describeProofs(const inventory::Cluster& cluster);

}  // namespace muster::gateway
