// What the agent says when only a permission is missing. The controller advises `muster wipe` for this refusal and for no other.
#pragma once

#include <string_view>

namespace muster::agent {

inline constexpr std::string_view kWipeGuard = "it is not overwritten, because the plan did not say that this node may be wiped";

}  // namespace muster::agent
