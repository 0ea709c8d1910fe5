// SPDX-License-Identifier: Apache-2.0
#include "base/ip_address.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace muster {

namespace {

/// Decimal without sign or blanks, at most `max`.
std::optional<std::uint32_t> decimal(std::string_view text, std::uint32_t max) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;  // 010 is octal to some programs
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value > max) return std::nullopt;
  return value;
}

std::uint32_t maskOf(int prefix_bits) {
  return prefix_bits == 0 ? 0 : ~std::uint32_t{0} << (32 - prefix_bits);
}

}  // namespace

Result<Ipv4> Ipv4::parse(std::string_view text) {
  std::uint32_t value = 0;
  std::string_view rest = text;
  for (int part = 0; part < 4; ++part) {
    const auto dot = rest.find('.');
    const bool last = part == 3;
    const auto number = decimal(rest.substr(0, dot), 255);
    if (!number || last != (dot == std::string_view::npos)) {
      return fail(ErrorCode::InvalidInput,
                  text.find(':') == std::string_view::npos
                      ? fmt::format("\"{}\" is not an IPv4 address; write it as 10.20.0.1", text)
                      : fmt::format("\"{}\" is an IPv6 address, and muster has IPv4 only here; "
                                    "write it as 10.20.0.1",
                                    text));
    }
    value = value << 8 | *number;
    if (!last) rest.remove_prefix(dot + 1);
  }
  return Ipv4(value);
}

std::string Ipv4::str() const {
  return fmt::format("{}.{}.{}.{}", value_ >> 24, value_ >> 16 & 255, value_ >> 8 & 255,
                     value_ & 255);
}

Result<Cidr> Cidr::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto bits =
      slash == std::string_view::npos ? std::nullopt : decimal(text.substr(slash + 1), 32);
  if (!bits)
    return fail(ErrorCode::InvalidInput,
                text.find(':') == std::string_view::npos
                    ? fmt::format("\"{}\" is not a network; write it as 10.20.0.0/16", text)
                    : fmt::format("\"{}\" is an IPv6 network, and muster has IPv4 only here; "
                                  "write it as 10.20.0.0/16",
                                  text));
  TRY(network, Ipv4::parse(text.substr(0, slash)));
  Cidr cidr{network, static_cast<int>(*bits)};
  const Ipv4 base(network.value() & maskOf(cidr.prefix_bits));
  if (base != network) {
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" has host bits set; the network is {}/{}", text, base.str(),
                            cidr.prefix_bits));
  }
  return cidr;
}

std::string Cidr::str() const { return fmt::format("{}/{}", network.str(), prefix_bits); }
Ipv4 Cidr::netmask() const { return Ipv4(maskOf(prefix_bits)); }
Ipv4 Cidr::host(std::uint32_t index) const { return Ipv4(network.value() + index); }
bool Cidr::contains(Ipv4 address) const {
  return (address.value() & maskOf(prefix_bits)) == network.value();
}
bool Cidr::overlaps(const Cidr& other) const {
  return contains(other.network) || other.contains(network);
}

}  // namespace muster
