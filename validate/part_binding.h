// SPDX-License-Identifier: Apache-2.0
// Which parts of a node its gates and its certificate stand for, and what a change of them asks
// for. Pure.
#pragma once

#include "inventory/model/certificates.h"
#include "inventory/model/fwd.h"
#include "lifecycle/model/facet.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::validate {

/// Facets that list the parts of a kind: "hw.part.dimm" = "A1=S1, A2=S2".
inline constexpr std::string_view kPartPrefix = "hw.part.";
/// Facets that say which parts there were when a gate passed: "gate-parts.burn-in" =
/// "dimm=0123456789abcdef hca=…", 16 hex digits of SHA-256 a kind.
inline constexpr std::string_view kGatePartsPrefix = "gate-parts.";

/// What the site asks for when parts of this kind change; of a kind that no policy knows, all
/// gates.
inventory::PartChange onChangeOf(const inventory::CertificatePolicy& policy, std::string_view kind);

/// The value of a gate's "gate-parts." facet for these facts of a node; "none": no part is known.
std::string partsAtGate(const std::vector<lifecycle::Fact>& facts_of_node);

/// Kinds whose parts are others than when the gate passed and that the policy lets `gate` be run
/// again for. A kind that is unknown now, or was then, has not changed: what nobody saw proves
/// nothing, in either direction.
/// Shape: `at_gate` as partsAtGate wrote it
std::vector<std::string> changedPartsFor(const inventory::Cluster& cluster,
                                         const inventory::Node& node, const std::string& gate,
                                         const std::string& at_gate,
                                         const std::vector<lifecycle::Fact>& facts_of_node);

/// Whether parts of this kind were known when the gate ran.
bool sawKind(const std::string& at_gate, std::string_view kind);

/// "A2=S2 gone; A2=S9 new": what differs between two lists of parts.
std::string partsDifference(std::string_view before, std::string_view now);

}  // namespace muster::validate
