// SPDX-License-Identifier: Apache-2.0
// What a JSON value lacks, in words for people.
#pragma once

#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace muster {

/// "type must be string, but is number": the library's words without its own name and number of the
/// exception, "[json.exception.type_error.302] ".
inline std::string jsonProblem(const nlohmann::json::exception& error) {
  std::string_view text = error.what();
  if (const auto end = text.find("] "); text.starts_with('[') && end != std::string_view::npos)
    text.remove_prefix(end + 2);
  return std::string(text);
}

}  // namespace muster
