// SPDX-License-Identifier: Apache-2.0
// What an operator decides about the identity of a BMC, a TPM or an agent after having checked it:
// bmc trust reset, auth reset, forget-tpm, forget-key, approve-key, revoke-key.
#pragma once

#include "app/site/options.h"

#include <string>
#include <vector>

namespace muster::app {

// Each takes a hostlist and answers the nodes that were changed.
// Errors: NotFound (not in the inventory; nothing was changed)

/// The certificate and the SSH host key that the BMC presents next are pinned.
Result<std::vector<NodeName>> resetBmcTrust(const Options& options, const std::string& nodes);
/// The refused password is tried once more.
Result<std::vector<NodeName>> resetBmcAuth(const Options& options, const std::string& nodes);
/// The TPM that proves itself next is the node's.
Result<std::vector<NodeName>> forgetTpm(const Options& options, const std::string& nodes);
/// The key that the agent presents next is the node's.
Result<std::vector<NodeName>> forgetAgentKey(const Options& options, const std::string& nodes);
/// No agent of the node is accepted until the node is imaged again.
Result<std::vector<NodeName>> revokeAgentKeys(const Options& options, const std::string& nodes);

/// The RAM OS with this key may enroll as the node while the node is armed.
Result<void> approveAgentKey(const Options& options, const NodeName& node,
                             const std::string& fingerprint);

}  // namespace muster::app
