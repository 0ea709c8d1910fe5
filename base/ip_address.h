// SPDX-License-Identifier: Apache-2.0
// IP addresses and networks.
#pragma once

#include "base/result.h"

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

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
