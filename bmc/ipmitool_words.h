// How ipmitool words why it did not work. Its exit code tells nothing of the reason.
#pragma once

#include "base/result.h"

#include <array>
#include <span>
#include <string_view>

namespace muster::bmc {

struct IpmitoolRefusal {
  std::string_view says;
  ErrorCode code;
  std::string_view means;
  bool of_password = false;
};

/// Of every session, whatever it is opened for.
inline constexpr std::array kIpmitoolLogins = {
    IpmitoolRefusal{"RAKP 2 HMAC is invalid", ErrorCode::Denied, "the BMC does not take the password", true},
    IpmitoolRefusal{"unauthorized name", ErrorCode::Denied, "the BMC does not know the user", true},
};

/// The first row that fits, the logins before those given: a password that was refused must be known as such. Null: none does.
inline const IpmitoolRefusal* refusalIn(std::string_view said, std::span<const IpmitoolRefusal> rows) {
  for (const auto list : {std::span<const IpmitoolRefusal>(kIpmitoolLogins), rows})
    for (const auto& row : list)
      if (said.find(row.says) != std::string_view::npos) return &row;
  return nullptr;
}

}  // namespace muster::bmc
