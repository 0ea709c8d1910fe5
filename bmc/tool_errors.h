// SPDX-License-Identifier: Apache-2.0
// How a program words why it did not work, where its exit code tells nothing of the reason.
#pragma once

#include "base/result.h"

#include <span>
#include <string>
#include <string_view>

namespace muster::bmc {

struct ToolError {
  std::string_view says;
  ErrorCode code;
  std::string_view means;
  bool of_password = false;
};

/// The first row that fits; null: none does.
inline const ToolError* findToolError(std::string_view said, std::span<const ToolError> rows) {
  for (const auto& row : rows)
    if (said.find(row.says) != std::string_view::npos) return &row;
  return nullptr;
}

/// The last line that is not empty, as plain ASCII.
inline std::string lastMessage(std::string_view said, std::string_view program) {
  while (!said.empty() && (said.back() == '\n' || said.back() == '\r')) said.remove_suffix(1);
  const auto line = said.rfind('\n');
  std::string out(line == std::string_view::npos ? said : said.substr(line + 1));
  std::erase_if(out, [](unsigned char c) { return c < 0x20 || c > 0x7e; });
  return out.empty() ? std::string(program) + " ended without a message" : out;
}

}  // namespace muster::bmc
