// SPDX-License-Identifier: Apache-2.0
#include "cli/exit_code.h"

#include "base/json_output.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace muster::cli {
namespace {

bool& isJson() {
  static bool json = false;  // of the process, like its standard output
  return json;
}

}  // namespace

void reportAsJson() { isJson() = true; }

std::string errorJson(const Error& error) {
  nlohmann::json out = {{"code", toString(error.code())},
                        {"text", error.str()},
                        {"context", error.context()},
                        {"retryable", error.canRetry()}};
  if (const auto& where = error.where())
    out.update({{"file", where->file}, {"line", where->line}, {"column", where->column}});
  return jsonText(nlohmann::json{{"error", std::move(out)}});
}

int report(const Error& error) {
  std::cerr << "muster: " << toString(error.code()) << ": " << error.str() << '\n';
  if (isJson()) std::cout << errorJson(error) << '\n';
  return kFailed;
}

}  // namespace muster::cli
