// SPDX-License-Identifier: Apache-2.0
// The HCA that a program looks through: `-C mlx5_1`; without it the library chooses one whose port
// is up. Of the three programs that run beside muster.
#pragma once

#include <iostream>
#include <optional>
#include <string>
#include <string_view>

/// Empty: not said. Nullopt: these are no arguments of the program, which is told.
inline std::optional<std::string> localHca(int count, char** arguments, std::string_view program) {
  if (count == 1) return std::string();
  if (count == 3 && std::string_view(arguments[1]) == "-C" && *arguments[2] != '\0')
    return std::string(arguments[2]);
  std::cerr << program << ": usage: " << program << " [-C HCA]\n";
  return std::nullopt;
}

/// As the libraries take it.
inline char* nameOrNone(std::string& hca) { return hca.empty() ? nullptr : hca.data(); }
