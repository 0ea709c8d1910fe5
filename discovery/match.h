// SPDX-License-Identifier: Apache-2.0
// Which machines are meant: globs over their fields.
#pragma once

#include "base/result.h"
#include "discovery/machine.h"
#include "inventory/model/fwd.h"

#include <map>

namespace muster::discovery {

/// "model=*H100*" → {model, *H100*}. Errors: InvalidInput (no such field)
Result<std::pair<std::string, std::string>> parseMatch(const std::string& text);
/// Every glob fits; of a field with several values (MACs, GPU models) one does. Case does not
/// matter.
bool matches(const Machine& machine, const std::map<std::string, std::string>& globs);
/// The first rule that fits, by name; null when none does.
const inventory::DiscoveryRule* ruleFor(const Machine& machine,
                                        const inventory::DiscoveryPolicy& policy);

}  // namespace muster::discovery
