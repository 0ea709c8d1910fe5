// SPDX-License-Identifier: Apache-2.0
#include "base/ip_network.h"

#include <fmt/format.h>

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace muster {

namespace {

constexpr std::size_t kV4Bytes = 4;
constexpr int kByteBits = 8;

int widthOf(IpFamily family) { return family == IpFamily::V4 ? 32 : 128; }

/// Whether the first `bits` are the same.
bool sameStart(const IpAddress::Bytes& a, const IpAddress::Bytes& b, int bits) {
  const auto whole = static_cast<std::size_t>(bits / kByteBits);
  if (!std::equal(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(whole), b.begin()))
    return false;
  const int rest = bits % kByteBits;
  return rest == 0 || (a[whole] >> (kByteBits - rest)) == (b[whole] >> (kByteBits - rest));
}

}  // namespace

IpAddress::IpAddress(Ipv4 address) {
  for (std::size_t i = 0; i < kV4Bytes; ++i)
    bytes_[i] = static_cast<std::uint8_t>(address.value() >> (kByteBits * (kV4Bytes - 1 - i)));
}

Result<IpAddress> IpAddress::parse(std::string_view text) {
  if (text.find(':') == std::string_view::npos) {
    auto v4 = Ipv4::parse(text);
    if (!v4)
      return fail(
          ErrorCode::InvalidInput,
          fmt::format("\"{}\" is not an address; write it as 10.20.0.1 or fd00:20::1", text));
    return IpAddress(*v4);
  }
  IpAddress out;
  out.family_ = IpFamily::V6;
  // A zone (%eth0) or an IPv4 part in dots has no place in an inventory.
  const bool plain = text.find_first_not_of("0123456789abcdefABCDEF:") == std::string_view::npos;
  if (!plain || ::inet_pton(AF_INET6, std::string(text).c_str(), out.bytes_.data()) != 1)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" is not an IPv6 address; write it as fd00:20::1", text));
  return out;
}

std::string IpAddress::str() const {
  if (isV4()) return v4().str();
  std::array<char, INET6_ADDRSTRLEN> text{};
  in6_addr address{};
  std::memcpy(&address, bytes_.data(), bytes_.size());
  return ::inet_ntop(AF_INET6, &address, text.data(), text.size());
}

Ipv4 IpAddress::v4() const {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kV4Bytes; ++i) value = value << kByteBits | bytes_[i];
  return Ipv4(value);
}

Result<IpAddress> IpAddress::plus(std::uint64_t count) const {
  IpAddress out = *this;
  std::uint64_t carry = count;
  for (std::size_t i = isV4() ? kV4Bytes : bytes_.size(); i-- > 0 && carry > 0;) {
    const auto low = (carry & 0xff) + out.bytes_[i];
    out.bytes_[i] = static_cast<std::uint8_t>(low);
    carry = (carry >> kByteBits) + (low >> kByteBits);
  }
  if (carry > 0)
    return fail(ErrorCode::InvalidInput, fmt::format("no address is {} after {}", count, str()));
  return out;
}

bool IpAddress::isLinkLocal() const {
  constexpr std::uint8_t kV6First = 0xfe, kV6Second = 0x80, kV6Mask = 0xc0;
  constexpr std::uint8_t kV4First = 169, kV4Second = 254;
  return isV4() ? bytes_[0] == kV4First && bytes_[1] == kV4Second
                : bytes_[0] == kV6First && (bytes_[1] & kV6Mask) == kV6Second;
}

Result<IpNetwork> IpNetwork::parse(std::string_view text) {
  const auto wrong = [&] {
    return fail(
        ErrorCode::InvalidInput,
        fmt::format("\"{}\" is not a network; write it as 10.20.0.0/16 or fd00:20::/64", text));
  };
  const auto slash = text.find('/');
  if (slash == std::string_view::npos) return wrong();
  const auto number = text.substr(slash + 1);
  int bits = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
  if (number.empty() || error != std::errc() || end != number.data() + number.size() ||
      (number.size() > 1 && number.front() == '0') || number.front() == '-')
    return wrong();
  TRY(address, IpAddress::parse(text.substr(0, slash)));
  if (bits > widthOf(address.family())) return wrong();
  IpNetwork out{address, bits};
  for (int bit = bits; bit < widthOf(address.family()); ++bit)
    out.network.bytes_[static_cast<std::size_t>(bit / kByteBits)] &=
        static_cast<std::uint8_t>(~(0x80 >> (bit % kByteBits)));
  if (out.network != address)
    return fail(ErrorCode::InvalidInput,
                fmt::format("\"{}\" has host bits set; the network is {}", text, out.str()));
  return out;
}

std::string IpNetwork::str() const { return fmt::format("{}/{}", network.str(), prefix_bits); }

bool IpNetwork::contains(const IpAddress& address) const {
  return address.family() == family() && sameStart(address.bytes_, network.bytes_, prefix_bits);
}

bool IpNetwork::overlaps(const IpNetwork& other) const {
  return contains(other.network) || other.contains(network);
}

bool IpNetwork::isReserved(const IpAddress& address) const {
  if (!contains(address) || prefix_bits >= widthOf(family()) - 1) return false;
  if (address == network) return true;
  return address.isV4() && Cidr{network.v4(), prefix_bits}.netmask().value() ==
                               ~(address.v4().value() ^ network.v4().value());
}

}  // namespace muster
