// SPDX-License-Identifier: Apache-2.0
// The verifier of a machine's proof by TPM (attestation.h).
#pragma once

#include "base/clock.h"
#include "base/ids.h"
#include "base/io/tpm2.h"
#include "base/result.h"
#include "inventory/model/fwd.h"
#include "lifecycle/store/store.h"
#include "wire/attestation.h"

namespace muster::gateway {

/// The store keeps under "tpm.ek.NODE" the id of the EK that the node proved first.
class Attestor {
 public:
  Attestor(const inventory::Cluster& cluster, lifecycle::Store& store, Clock& clock)
      : cluster_(cluster), store_(store), clock_(clock) {}

  /// nullptr: nothing is asked of this node.
  const inventory::TpmSpec* policyOf(const inventory::Node& node) const;
  /// Has a TPM proved itself as this node's before? Errors: those of the store
  Result<bool> knows(const NodeName& node) const;
  /// Errors: Denied (another TPM than before, no trusted certificate), InvalidInput, Corrupt
  Result<wire::AttestChallenge> challenge(const inventory::Node& node,
                                          const wire::AttestRequest& request);
  /// Errors: Denied with what is wrong; the challenge is used up in any case
  Result<void> check(const inventory::Node& node, const wire::AttestedRequest& request);

 private:
  struct Pending {
    io::TpmPublic attestation_key;
    std::string endorsement_id, secret, nonce;
    std::chrono::steady_clock::time_point until;
  };
  Result<void> checkQuote(const inventory::TpmSpec& policy, const Pending& pending,
                          const wire::AttestedRequest& request) const;

  const inventory::Cluster& cluster_;
  lifecycle::Store& store_;
  Clock& clock_;
  std::map<NodeName, Pending> pending_;  ///< one a node
};

/// After a main board was replaced: the TPM that the node shows next is its own.
Result<void> forgetTpm(lifecycle::Store& store, const NodeName& node);

}  // namespace muster::gateway
