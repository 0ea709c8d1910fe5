// SPDX-License-Identifier: Apache-2.0
// Which rack of the twin a state folder belongs to. What the state knows (pinned certificates of
// BMCs, keys of agents, facts, the journal) is of one rack; a rack that is made anew has other BMCs
// and empty disks. docs/adr/0201
#pragma once

#include "base/result.h"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace muster::app {

/// Makes the state folder this rack's. Of an earlier rack's state the site's own keys (`ca`,
/// `keys`) stay; all else goes to FOLDER.before, in the place of what lies there. `store`: the URL,
/// when it is not in the folder. Errors: Conflict (a state that no rack has, a store elsewhere that
/// is another rack's, somebody works on it), Internal Effect: the same again after a crash at any
/// point
Result<void> bindToRack(const std::filesystem::path& state, const std::string& store,
                        const std::string& rack_id,
                        const std::function<void(std::string_view)>& say);

/// Errors: Conflict when the state is another rack's. One that belongs to no rack is nobody else's.
Result<void> checkBoundTo(const std::filesystem::path& state, const std::string& rack_id);

}  // namespace muster::app
