// SPDX-License-Identifier: Apache-2.0
// The hash over everything that a validation depends on. Two equal hashes mean that an earlier pass
// still holds for the node.
#pragma once

#include "base/ids.h"
#include "inventory/model/certificates.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <map>
#include <string>

namespace muster::validate {

/// SHA-256 of the node's declaration: profile, expectations, image, drivers, firmware, gates.
/// Comments and other nodes do not count.
std::string declarationDigest(const inventory::Cluster& cluster, const inventory::Node& node);

/// SHA-256 over the declaration, the hardware facts (hw.*) and the installed image. Pure.
std::string validationScopeHash(const inventory::Cluster& cluster, const inventory::Node& node,
                                const lifecycle::FactSet& facts);

/// The facts that a certificate is bound to: hw.*, image, firmware.*, driver.*, gate.*; kinds of
/// parts as the policy says.
std::map<std::string, std::string> boundFacts(const inventory::CertificatePolicy& policy,
                                              const std::vector<lifecycle::Fact>& facts_of_node);
std::map<std::string, std::string> boundFacts(const inventory::CertificatePolicy& policy,
                                              const NodeName& node,
                                              const lifecycle::FactSet& facts);

}  // namespace muster::validate
