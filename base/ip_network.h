// SPDX-License-Identifier: Apache-2.0
// Addresses and networks of either family, for what serves both (a node's own network). What is
// IPv4 alone stays with base/ip_address.h.
#pragma once

#include "base/ip_address.h"
#include "base/result.h"

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace muster {

enum class IpFamily { V4, V6 };

/// An IPv4 or IPv6 address. Printed in one form only (RFC 5952 for IPv6), so equal ones are equal
/// as text.
class IpAddress {
 public:
  using Bytes = std::array<std::uint8_t, 16>;

  IpAddress() = default;  ///< 0.0.0.0
  IpAddress(Ipv4 address);
  static Result<IpAddress> parse(std::string_view text);
  std::string str() const;
  IpFamily family() const { return family_; }
  bool isV4() const { return family_ == IpFamily::V4; }
  Ipv4 v4() const;  ///< of an IPv4 address
  /// The address so many after this one; it does not wrap. Errors: InvalidInput (beyond the last)
  Result<IpAddress> plus(std::uint64_t count) const;
  bool isLinkLocal() const;
  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  friend struct IpNetwork;

  IpFamily family_ = IpFamily::V4;
  Bytes bytes_{};  ///< network order; of IPv4 the first four
};

/// "10.20.0.0/16", "fd00:30::/64". Host bits set in the text are an error.
struct IpNetwork {
  IpAddress network;
  int prefix_bits = 0;

  IpNetwork() = default;
  IpNetwork(IpAddress network, int prefix_bits) : network(network), prefix_bits(prefix_bits) {}
  IpNetwork(const Cidr& cidr) : network(cidr.network), prefix_bits(cidr.prefix_bits) {}
  static Result<IpNetwork> parse(std::string_view text);
  std::string str() const;
  IpFamily family() const { return network.family(); }
  bool contains(const IpAddress& address) const;  ///< never one of the other family
  bool overlaps(const IpNetwork& other) const;
  /// Its own address, or IPv4's broadcast address: no host's. Of /31, /32, /127 and /128 none is.
  bool isReserved(const IpAddress& address) const;
  friend bool operator==(const IpNetwork&, const IpNetwork&) = default;
};

}  // namespace muster
