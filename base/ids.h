// SPDX-License-Identifier: Apache-2.0
// Strong types for the names that cross interfaces.
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

/// IPv4 address, host byte order inside.
class Ipv4 {
 public:
  Ipv4() = default;
  explicit Ipv4(std::uint32_t value) : value_(value) {}
  static Result<Ipv4> parse(std::string_view text);
  std::string str() const;
  std::uint32_t value() const { return value_; }
  friend auto operator<=>(const Ipv4&, const Ipv4&) = default;

 private:
  std::uint32_t value_ = 0;
};

/// IPv4 prefix, "10.20.0.0/16". Host bits set in the text are an error.
struct Cidr {
  Ipv4 network;
  int prefix_bits = 0;

  static Result<Cidr> parse(std::string_view text);
  std::string str() const;
  Ipv4 netmask() const;
  Ipv4 host(std::uint32_t index) const;  ///< network + index
  bool contains(Ipv4 address) const;
  bool overlaps(const Cidr& other) const;
  friend bool operator==(const Cidr&, const Cidr&) = default;
};

}  // namespace muster

template <class Tag>
struct std::hash<muster::Name<Tag>> {
  std::size_t operator()(const muster::Name<Tag>& name) const {
    return std::hash<std::string>()(name.str());
  }
};
