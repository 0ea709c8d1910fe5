// SPDX-License-Identifier: Apache-2.0
// How ipmitool words why it did not work.
#pragma once

#include "bmc/tool_errors.h"

#include <array>

namespace muster::bmc {

/// Of every session, whatever it is opened for.
inline constexpr std::array kIpmitoolLogins = {
    ToolError{"RAKP 2 HMAC is invalid", ErrorCode::Denied, "the BMC does not take the password",
              true},
    ToolError{"unauthorized name", ErrorCode::Denied, "the BMC does not know the user", true},
};

/// The logins before those given: a password that was refused must be known as such. Null: no row
/// fits.
inline const ToolError* refusalIn(std::string_view said, std::span<const ToolError> rows) {
  const auto* login = findToolError(said, kIpmitoolLogins);
  return login ? login : findToolError(said, rows);
}

}  // namespace muster::bmc
