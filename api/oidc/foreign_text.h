// SPDX-License-Identifier: Apache-2.0
// What a provider, or a token of it, says, for a message: one printable line of few bytes.
#pragma once

#include "base/printable.h"
#include "base/utf8.h"

#include <string>
#include <string_view>

namespace muster::api {

inline std::string shown(std::string_view foreign, std::size_t max_bytes) {
  return std::string(cutToBytes(printable(foreign), max_bytes));
}

}  // namespace muster::api
