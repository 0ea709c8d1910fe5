// SPDX-License-Identifier: Apache-2.0
#include "gateway/enrollment_proof.h"

#include "base/ip_address.h"

#include "inventory/model/access.h"
#include "inventory/model/cluster.h"
#include "inventory/model/leases.h"
#include "inventory/model/networks.h"
#include "inventory/model/profile.h"

#include <fmt/format.h>

#include <map>

namespace muster::gateway {

namespace {

bool leasesAddresses(const inventory::Cluster& cluster) {
  return !cluster.networks.empty() && inventory::leasesAddresses(cluster.provisioning());
}

}  // namespace

std::string_view describe(EnrollmentProof proof) {
  switch (proof) {
    case EnrollmentProof::LeaseAndNeighbour:
      return "DHCP lease and neighbour table";
    case EnrollmentProof::Lease:
      return "DHCP lease (behind a relay)";
    case EnrollmentProof::Neighbour:
      return "neighbour table, or else a known TPM or muster bmc approve-key";
    case EnrollmentProof::KnownTpm:
      return "known TPM";
    case EnrollmentProof::Approval:
      return "approved by a person";
  }
  return "?";
}

std::string describe(ProofGap gap, const inventory::Node& node, const std::string& remote_address) {
  const auto mac = node.mac.str();
  switch (gap) {
    case ProofGap::None:
      return "nothing is missing";
    case ProofGap::NoLease:
      return fmt::format("this host's DHCP server has leased no {} to {}", remote_address, mac);
    case ProofGap::LeaseOfBefore:
      return fmt::format(
          "the DHCP lease of {} to {} is older than this start of the node: the machine at that "
          "address has not asked for one since",
          remote_address, mac);
    case ProofGap::OtherNeighbour:
      return fmt::format("the neighbour table shows another MAC than {} at {}", mac,
                         remote_address);
    case ProofGap::NotANeighbour:
      return fmt::format(
          "the neighbour table does not show who has {}, so nothing shows that it is {}",
          remote_address, mac);
    case ProofGap::BadAddress:
      return fmt::format("\"{}\" is no IPv4 address", remote_address);
  }
  return "?";
}

EnrollmentProof expectedProof(const inventory::Cluster& cluster, const inventory::Node& node) {
  if (!leasesAddresses(cluster)) return EnrollmentProof::Neighbour;
  return inventory::subnetOf(cluster.provisioning(), node.address)
             ? EnrollmentProof::Lease
             : EnrollmentProof::LeaseAndNeighbour;
}

Result<NetworkProof> proofByNetwork(const inventory::Cluster& cluster, const inventory::Node& node,
                                    const std::string& remote_address,
                                    const std::string& lease_before,
                                    const NetworkEvidence& evidence) {
  const auto from = Ipv4::parse(remote_address);
  if (!from) return NetworkProof{std::nullopt, ProofGap::BadAddress};
  const auto expected = expectedProof(cluster, node);
  if (expected != EnrollmentProof::Neighbour) {
    TRY(lease, evidence.leaseOf(node.mac));
    if (!lease || lease->address != *from) return NetworkProof{std::nullopt, ProofGap::NoLease};
    if (lease->expires == lease_before) return NetworkProof{std::nullopt, ProofGap::LeaseOfBefore};
    if (expected == EnrollmentProof::Lease) return NetworkProof{expected, ProofGap::None};
  }
  TRY(match, evidence.neighbour(*from, node.mac));
  switch (match) {
    case NeighbourMatch::Same:
      return NetworkProof{expected, ProofGap::None};
    case NeighbourMatch::Other:
      return NetworkProof{std::nullopt, ProofGap::OtherNeighbour};
    case NeighbourMatch::Absent:
      break;
  }
  return NetworkProof{std::nullopt, ProofGap::NotANeighbour};
}

std::string describeProofs(const inventory::Cluster& cluster) {
  std::map<std::pair<EnrollmentProof, bool>, std::size_t> counts;
  for (const auto& node : cluster.nodes) {
    const auto profile = cluster.profiles.find(node.profile);
    ++counts[{expectedProof(cluster, node),
              profile != cluster.profiles.end() && profile->second.tpm.has_value()}];
  }
  std::string out;
  for (const auto& [kind, nodes] : counts)
    out += fmt::format("enrollment of {} nodes is proven by: {}{}\n", nodes, describe(kind.first),
                       kind.second ? "; and the TPM's quote" : "");
  return out;
}

}  // namespace muster::gateway
