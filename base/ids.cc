// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace muster {

namespace {

std::optional<int> hexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return std::nullopt;
}

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

/// Where separators stand in the accepted spellings; empty when the text is none of them.
bool separatorsFit(std::string_view text) {
  const auto all = [&](std::size_t step, char separator) {
    for (std::size_t i = 0; i < text.size(); ++i) {
      const bool here = i % (step + 1) == step;
      if (here != (text[i] == separator)) return false;
    }
    return true;
  };
  switch (text.size()) {
    case 12:
      return true;
    case 14:
      return all(4, '.');
    case 17:
      return all(2, ':') || all(2, '-');
    default:
      return false;
  }
}

}  // namespace

Result<Mac> Mac::parse(std::string_view text) {
  const auto bad = [&] {
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is not an Ethernet address; write it as aa:bb:cc:dd:ee:ff", text));
  };
  if (!separatorsFit(text)) return bad();
  Mac mac;
  std::size_t digits = 0;
  for (const char c : text) {
    const auto digit = hexDigit(c);
    if (!digit) {
      if (text.size() != 12 && (c == ':' || c == '-' || c == '.')) continue;
      return bad();
    }
    auto& byte = mac.bytes_[digits / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | *digit);
    ++digits;
  }
  if (digits != 12) return bad();
  return mac;
}

std::string Mac::str() const {
  return fmt::format("{:02x}:{:02x}:{:02x}:{:02x}:{:02x}:{:02x}", bytes_[0], bytes_[1], bytes_[2],
                     bytes_[3], bytes_[4], bytes_[5]);
}

Result<Ipv4> Ipv4::parse(std::string_view text) {
  std::uint32_t value = 0;
  std::string_view rest = text;
  for (int part = 0; part < 4; ++part) {
    const auto dot = rest.find('.');
    const bool last = part == 3;
    const auto number = decimal(rest.substr(0, dot), 255);
    if (!number || last != (dot == std::string_view::npos)) {
      return fail(ErrorCode::InvalidInput,
                  fmt::format("\"{}\" is not an IPv4 address; write it as 10.20.0.1", text));
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
                fmt::format("\"{}\" is not a network; write it as 10.20.0.0/16", text));
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
