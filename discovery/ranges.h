// SPDX-License-Identifier: Apache-2.0
// Ranges of addresses, as people write them.
#pragma once

#include "base/ids.h"
#include "base/ip_address.h"

#include <string>
#include <vector>

namespace muster::discovery {

inline constexpr std::size_t kMaxAddresses = 65'536;

class Ranges {
 public:
  /// "10.20.250.1-10.20.250.64", "10.20.250.0/24" (without network and broadcast address),
  /// "10.20.250.7". Errors: InvalidInput (which one, and why; more than kMaxAddresses together)
  static Result<Ranges> parse(const std::vector<std::string>& texts);
  bool contains(Ipv4 address) const;
  /// In order, each once.
  std::vector<Ipv4> addresses() const;

 private:
  std::vector<std::pair<std::uint32_t, std::uint32_t>>
      spans_;  ///< sorted, disjoint, both ends inside
};

}  // namespace muster::discovery
