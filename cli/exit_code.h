// SPDX-License-Identifier: Apache-2.0
// How every command ends.
#pragma once

#include "base/result.h"

#include <string>

namespace muster::cli {

/// Exit codes of the program.
enum ExitCode {
  kOk = 0,
  kFailed = 1,
  kUsage = 2,
  kChanges = 2,  ///< of `plan --detailed-exitcode` only
  kWorkLeft = 3
};

/// Prints the error the way all commands do and answers kFailed: to standard error for people, and
/// after reportAsJson() to standard output, too.
int report(const Error& error);
/// Of a process that was asked for --json: its errors are JSON as well.
void reportAsJson();
/// {"error": {code, text, context, retryable, file, line, column}} on one line.
std::string errorJson(const Error& error);

}  // namespace muster::cli
