// SPDX-License-Identifier: Apache-2.0
// How a check runs a program of the machine.
#pragma once

#include "base/io/process.h"
#include "validate/checks/check_row.h"

#include <string>
#include <vector>

namespace muster::validate {

constexpr std::size_t kEvidenceBytes = 16u << 10;  ///< of a program's output that a result keeps

inline Result<io::ProcessExit> runProgram(const Host& host, std::string program,
                                          std::vector<std::string> args, double limit_seconds) {
  io::Command command;
  command.program = std::move(program), command.args = std::move(args);
  command.timeout = std::chrono::seconds(static_cast<long>(limit_seconds));
  return host.run(command);
}

/// It could not be run, or did not come to its end.
inline Verdict broken(const Error& error) {
  const auto status =
      error.code() == ErrorCode::Timeout ? wire::CheckStatus::Timeout : wire::CheckStatus::Error;
  return {status, error.str(), {}, {}};
}

}  // namespace muster::validate
