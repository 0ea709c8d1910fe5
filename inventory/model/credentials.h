// SPDX-License-Identifier: Apache-2.0
// Accounts, and where their secrets come from.
#pragma once

#include "base/log.h"
#include "base/result.h"

#include <filesystem>
#include <string>
#include <variant>

namespace muster::inventory {

/// Where a secret comes from; never the secret itself. Read only at the moment of use.
struct SecretRef {
  std::variant<std::monostate, std::filesystem::path, std::string>
      source;       ///< file, or command line
  std::string env;  ///< or an environment variable
  /// Errors: NotFound with what to do
  /// A file loses its last line end; a command runs under sh and gives its first line.
  Result<Secret> read() const;
  bool declared() const { return !env.empty() || !std::holds_alternative<std::monostate>(source); }
};

struct Credential {
  std::string name;
  std::string username;
  SecretRef password;
  SecretRef rotate_to;  ///< what `muster bmc rotate` changes the password to; not declared: nothing
                        ///< is under way
};

}  // namespace muster::inventory
