// SPDX-License-Identifier: Apache-2.0
// How a command says what it has done: to people, or to a program that asked for --json.
#pragma once

#include "app/site/options.h"
#include "base/json_output.h"
#include "cli/exit_code.h"

#include <nlohmann/json.hpp>

#include <iostream>
#include <string>

namespace muster::cli {

/// `text` ends its lines itself. Answers kOk.
inline int printDone(const app::Options& options, const nlohmann::json& json,
                     const std::string& text) {
  std::cout << (options.json ? jsonText(json) + "\n" : text);
  return kOk;
}

}  // namespace muster::cli
