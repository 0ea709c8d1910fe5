// SPDX-License-Identifier: Apache-2.0
// Strong types for the names that cross interfaces; IP addresses are in base/ip_address.h.
#pragma once

#include "base/result.h"

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace muster {

/// A string that cannot be mistaken for another kind of string.
template <class Tag>
class Name {
 public:
  Name() = default;
  explicit Name(std::string value) : value_(std::move(value)) {}
  const std::string& str() const { return value_; }
  bool empty() const { return value_.empty(); }
  friend auto operator<=>(const Name&, const Name&) = default;

 private:
  std::string value_;
};

using NodeName = Name<struct NodeNameTag>;    ///< "gpu001"
using FacetName = Name<struct FacetNameTag>;  ///< "firmware.BMC"

/// Ethernet address.
class Mac {
 public:
  Mac() = default;
  /// Accepts aa:bb:cc:dd:ee:ff, aa-bb-…, aabb.ccdd.eeff, aabbccddeeff, any case.
  static Result<Mac> parse(std::string_view text);
  std::string str() const;  ///< "aa:bb:cc:dd:ee:ff"
  friend auto operator<=>(const Mac&, const Mac&) = default;

 private:
  std::array<std::uint8_t, 6> bytes_{};
};

}  // namespace muster

template <class Tag>
struct std::hash<muster::Name<Tag>> {
  std::size_t operator()(const muster::Name<Tag>& name) const {
    return std::hash<std::string>()(name.str());
  }
};
